"""Sequences: packing loses nothing, pairs are of one document or of two, and batches are a function of (seed, step)."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from data.corpus import texts
from weft.data.batch.loader import Batches
from weft.data.corpus.batches import MaskedBatch, masked_batches
from weft.data.corpus.corpus import open_corpus
from weft.data.corpus.masking import Masking
from weft.data.corpus.sequences import FOLLOWS, TORN, Pairs, Sequences, packed, separate
from weft.data.corpus.store import CorpusStore, store_of
from weft.errors import WeftError

TOKENIZER = texts.tokenizer()
LENGTH = 32


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> CorpusStore:
    path = texts.write(tmp_path_factory.mktemp("corpus"))
    return store_of(open_corpus(str(path)).documents, TOKENIZER)


EVERY = np.arange(150)


def test_packed_sequences_are_full_and_hold_every_token_once(store: CorpusStore) -> None:
    sequences = packed(store, EVERY, TOKENIZER, LENGTH)
    rows = [row.ids for row in sequences.rows(0, np.arange(len(sequences)))]
    assert all(len(row) == LENGTH for row in rows[:-1])
    assert all(row[0] == TOKENIZER.cls_id and row[-1] == TOKENIZER.sep_id for row in rows)
    inside = np.concatenate([row[1:-1] for row in rows])
    assert (inside[inside != TOKENIZER.sep_id] == store.ids).all()
    assert (inside == TOKENIZER.sep_id).sum() == len(EVERY) - 1


def test_separate_sequences_begin_with_a_document(store: CorpusStore) -> None:
    sequences = separate(store, EVERY, TOKENIZER, LENGTH)
    rows = [row.ids for row in sequences.rows(0, np.arange(len(sequences)))]
    assert max(map(len, rows)) <= LENGTH
    assert (np.concatenate([row[1:-1] for row in rows]) == store.ids).all()
    assert len(rows) == sum(-(-(store.span(n).stop - store.span(n).start) // (LENGTH - 2)) for n in EVERY)


def test_half_of_the_pairs_are_torn_and_the_others_go_on(store: CorpusStore) -> None:
    pairs = Pairs(store, EVERY, TOKENIZER, max_length=512)  # so long that nothing is cut
    everything = store.ids.tobytes()
    rows = [row for stream in range(8) for row in pairs.rows(stream, np.arange(len(pairs)))]
    for row in rows[:200]:
        a, b = row.ids[1 : row.second - 1], row.ids[row.second : -1]
        assert row.ids[row.second - 1] == row.ids[-1] == TOKENIZER.sep_id and len(a) and len(b)
        if row.follows == FOLLOWS:
            assert np.concatenate([a, b]).tobytes() in everything
    assert np.mean([row.follows == TORN for row in rows]) == pytest.approx(0.5, abs=0.05)


def test_pairs_that_are_too_long_are_cut_longest_first_and_counted(store: CorpusStore) -> None:
    pairs = Pairs(store, EVERY, TOKENIZER, max_length=16)
    assert any("are longer than 16 tokens: the longer text of each is cut first" in note for note in pairs.notes)
    long = Pairs(store, EVERY, TOKENIZER, max_length=512)
    for row in pairs.rows(0, np.arange(len(pairs))):
        assert len(row.ids) <= 16
        a, b = row.second - 2, len(row.ids) - row.second - 1
        assert abs(a - b) <= 1 or len(row.ids) < 16 or min(a, b) < 6  # equal, unless one was short to begin with
    assert not any("longer" in note for note in long.notes)


def test_pairs_need_two_documents_of_two_sentences(store: CorpusStore) -> None:
    with pytest.raises(WeftError, match="needs two documents of two sentences"):
        Pairs(store, np.array([3]), TOKENIZER, LENGTH)


def loader(sequences: Sequences, role: str | None = None, seed: int = 0, rank: int = 0, world: int = 1) -> Batches:
    masking = Masking.of(TOKENIZER, 0.15, 0.8, 0.1, whole_words=False)
    return masked_batches(sequences, MaskedBatch(sequences, masking, 0, LENGTH, seed, role), 16, seed, rank, world)


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())


@pytest.mark.parametrize("form", [packed, separate, Pairs])
def test_batches_are_pure_and_ranks_share_them(store: CorpusStore, form: type[Pairs]) -> None:
    sequences: Sequences = form(store, EVERY, TOKENIZER, LENGTH)
    one = loader(sequences)
    later = loader(sequences)[5]
    assert equal(one[5].inputs, later.inputs) and torch.equal(one[5].index, later.index)
    assert not equal(one[5].inputs, loader(sequences, seed=1)[5].inputs)
    parts = [loader(sequences, rank=rank, world=3)[5] for rank in range(3)]
    joined = {name: torch.cat([part.inputs[name] for part in parts]) for name in one[5].inputs}
    assert equal(one[5].inputs, joined)
    assert torch.equal(one[5].targets, torch.cat([part.targets for part in parts]))


def test_masks_change_from_step_to_step_but_not_between_evaluations(store: CorpusStore) -> None:
    sequences = packed(store, EVERY, TOKENIZER, LENGTH)
    train = loader(sequences)
    epoch = train.steps_per_epoch
    seen = {int(number): row for number, row in zip(train[0].index, train[0].inputs["answers"], strict=True)}
    again = [train[step] for step in range(epoch, 2 * epoch)]
    for batch in again:
        for number, row in zip(batch.index.tolist(), batch.inputs["answers"], strict=True):
            assert number not in seen or not torch.equal(row, seen[number])
    held = [loader(sequences, "validation", seed=0) for _ in range(2)]
    assert equal(held[0][1].inputs, held[1][1].inputs)
    assert not equal(held[0][1].inputs, loader(sequences, "test", seed=0)[1].inputs)


def test_nothing_is_said_of_padding_where_there_is_none(store: CorpusStore) -> None:
    sequences = packed(store, EVERY[:40], TOKENIZER, LENGTH)
    batches = list(loader(sequences, "validation"))
    assert "mask" not in batches[0].inputs and "mask" in batches[-1].inputs
    assert "segments" not in batches[0].inputs
    assert sum(len(batch.index) for batch in batches) == len(sequences)
