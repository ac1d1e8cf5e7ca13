"""A2: sinusoidal positions, the rotation that a shift is, and learned tables."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.nn.embeddings import LearnedPositions, SinusoidalPositions, positions, sinusoidal_table


def test_the_table_is_the_formula() -> None:
    """A2: p_t(2i) = sin(t / 10000^{2i/d}), p_t(2i+1) = cos of the same."""
    table = sinusoidal_table(50, 16)
    for t in (0, 1, 7, 49):
        for i in range(8):
            angle = t / 10000 ** (2 * i / 16)
            assert table[t, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[t, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


@settings(deadline=None, max_examples=50)
@given(half=st.integers(1, 16), t=st.integers(0, 200), shift=st.integers(0, 200))
def test_a_shift_is_a_rotation_of_each_pair(half: int, t: int, shift: int) -> None:
    """A2: p_{t+φ} is p_t with each pair turned by φ / 10000^{2i/d}, whatever t is."""
    dim = 2 * half
    table = sinusoidal_table(401, dim).double()
    for i in range(half):
        angle = shift / 10000 ** (2 * i / dim)
        sine, cosine = table[t, 2 * i].item(), table[t, 2 * i + 1].item()
        turned_sine = sine * math.cos(angle) + cosine * math.sin(angle)
        turned_cosine = cosine * math.cos(angle) - sine * math.sin(angle)
        assert table[t + shift, 2 * i].item() == pytest.approx(turned_sine, abs=1e-5)
        assert table[t + shift, 2 * i + 1].item() == pytest.approx(turned_cosine, abs=1e-5)


def test_far_positions_keep_their_precision() -> None:
    """A2: angles are taken in float64, so position 100,000 is not a rounded one."""
    assert sinusoidal_table(100_001, 2)[100_000, 0].item() == pytest.approx(math.sin(100_000), abs=1e-6)


def test_an_odd_number_of_channels_has_no_pairs() -> None:
    with pytest.raises(ValueError, match="even number of channels, not 7"):
        sinusoidal_table(4, 7)


def test_positions_are_added_and_only_learned_ones_are_trained() -> None:
    """A2, A3: a shorter text uses the first rows of the table."""
    x = torch.randn(2, 3, 8)
    for kind, trained in (("none", 0), ("learned", 5 * 8), ("sinusoidal", 0)):
        layer = positions(kind, 5, 8)
        assert sum(p.numel() for p in layer.parameters()) == trained
        added = layer(x) - x
        expected = layer.table[:3] if isinstance(layer, LearnedPositions | SinusoidalPositions) else torch.zeros(3, 8)
        torch.testing.assert_close(added, expected.expand_as(x), atol=1e-6, rtol=1e-5)


def test_the_sinusoidal_table_is_not_stored_in_a_checkpoint() -> None:
    """A2: it is a formula; a checkpoint of another length must not carry it."""
    assert not SinusoidalPositions(5, 8).state_dict()
