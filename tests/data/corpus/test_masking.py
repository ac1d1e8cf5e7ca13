"""Masks of A4: as many tokens, and as many of each sort, as Devlin et al. 2018 say; a function of example and step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.corpus import texts
from weft.data.corpus.masking import UNASKED, Masking

TOKENIZER = texts.tokenizer()


def masking(**changes: object) -> Masking:
    settings = {"share": 0.15, "hidden": 0.8, "random": 0.1, "whole_words": False}
    return Masking.of(TOKENIZER, **{**settings, **changes})  # type: ignore[arg-type]


def batch(rows: int = 400, width: int = 64) -> tuple[np.ndarray, np.ndarray]:
    """Ids between [CLS] and [SEP], rows of many lengths, and which of them are real."""
    rng = np.random.default_rng(0)
    x = rng.integers(5, TOKENIZER.vocab_size, (rows, width))
    lengths = rng.integers(3, width + 1, rows)
    real = np.arange(width) < lengths[:, None]
    x[:, 0] = TOKENIZER.cls_id
    x[np.arange(rows), lengths - 1] = TOKENIZER.sep_id
    return np.where(real, x, TOKENIZER.pad_id), real


def test_fifteen_percent_are_asked_and_80_10_10_of_them_are_hidden_swapped_kept() -> None:
    x, real = batch()
    shown, answers = masking()(x, real, np.arange(len(x)), stream=7)
    asked = answers != UNASKED
    ordinary = real & ~np.isin(x, [TOKENIZER.cls_id, TOKENIZER.sep_id])
    assert not (asked & ~ordinary).any()
    assert (asked.sum(1) == np.maximum(1, np.rint(0.15 * ordinary.sum(1)))).all()
    assert (shown[~asked] == x[~asked]).all() and (answers[asked] == x[asked]).all()
    hidden, kept = (shown == TOKENIZER.mask_id)[asked].mean(), (shown == x)[asked].mean()
    assert hidden == pytest.approx(0.8, abs=0.03)
    assert kept == pytest.approx(0.1, abs=0.03)  # some of the swapped ones are swapped with themselves
    swapped = shown[asked & (shown != x) & (shown != TOKENIZER.mask_id)]
    assert swapped.min() >= 5  # never a marker


def test_masks_depend_on_the_example_and_the_stream_alone() -> None:
    x, real = batch(50)
    whole = masking()(x, real, np.arange(50), stream=1)
    half = masking()(x[20:30], real[20:30], np.arange(20, 30), stream=1)
    wider = masking()(np.pad(x, ((0, 0), (0, 8))), np.pad(real, ((0, 0), (0, 8))), np.arange(50), stream=1)
    for one, part, wide in zip(whole, half, wider, strict=True):
        assert (one[20:30] == part).all() and (one == wide[:, :64]).all()
    assert (masking()(x, real, np.arange(50), stream=2)[1] != whole[1]).any()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 40), st.floats(0.05, 0.6))
def test_whole_words_are_masked_whole_and_about_as_many(stream: int, width: int, share: float) -> None:
    x, real = batch(20, width + 2)
    _, answers = masking(share=share, whole_words=True)(x, real, np.arange(20), stream)
    asked = answers != UNASKED
    goes_on = masking().inside[x] & real
    goes_on[:, :2] = False  # a piece after [CLS] begins what is left of its word
    same_word = asked[:, 1:] == asked[:, :-1]
    assert same_word[goes_on[:, 1:]].all()
    ordinary = (real & ~np.isin(x, [TOKENIZER.cls_id, TOKENIZER.sep_id])).sum(1)
    assert (asked.sum(1)[ordinary > 0] >= 1).all()
    longest = 1 + max((sum(1 for _ in run) for row in goes_on for run in [[v for v in row if v]]), default=0)
    assert (asked.sum(1) <= np.maximum(longest, np.maximum(1, np.rint(share * ordinary)))).all()


def test_nothing_but_markers_asks_nothing() -> None:
    x = np.array([[TOKENIZER.cls_id, TOKENIZER.sep_id, TOKENIZER.pad_id]])
    shown, answers = masking()(x, np.array([[True, True, False]]), np.array([3]), stream=0)
    assert (shown == x).all() and (answers == UNASKED).all()
