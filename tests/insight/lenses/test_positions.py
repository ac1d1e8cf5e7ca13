"""A2, A3: the lens `positions` against closed forms."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from insight.small import subject_of
from weft.errors import WeftError
from weft.insight import registry
from weft.insight.lenses.positions import (
    additive_share,
    between_others,
    places,
    rotation_error,
    similarity,
    toeplitz_share_of_noise,
)
from weft.insight.toeplitz import structure
from weft.nn.embeddings import sinusoidal_table


@settings(deadline=None, max_examples=15)
@given(tokens=st.integers(4, 40), half=st.integers(2, 12))
def test_the_similarity_of_sinusoidal_positions_is_toeplitz(tokens: int, half: int) -> None:
    """A2: a shift is a rotation, so p_t · p_u = Σ cos((t − u)·rate) depends on t − u alone, and scores exactly 1."""
    table = sinusoidal_table(tokens, 2 * half)
    rates = 10000 ** (-torch.arange(0, 2 * half, 2, dtype=torch.double) / (2 * half))
    for shift in (1, tokens - 1):
        wanted = float((shift * rates).cos().mean())
        assert similarity(table).diagonal(shift).tolist() == pytest.approx([wanted] * (tokens - shift), abs=1e-6)
    assert places(table, (tokens,)).line == pytest.approx(1, abs=1e-6)


def test_the_rotation_error_is_rounding_and_sees_a_wrong_table() -> None:
    """A2: turning each pair by φ·rate gives the position φ further on; a table with one changed value does not."""
    table = sinusoidal_table(30, 16)
    assert rotation_error(table) < 1e-6
    table[7, 3] += 0.25
    assert rotation_error(table) == pytest.approx(0.25, abs=0.1)


@pytest.mark.parametrize("grid", [(12,), (4, 5)])
def test_unrelated_positions_score_chance(grid: tuple[int, ...]) -> None:
    """A3: at the start, learned positions are noise; every position is like itself, and that does not count."""
    generator = torch.Generator().manual_seed(0)
    tokens = int(torch.tensor(grid).prod())
    tables = torch.randn(600, tokens, 64, generator=generator)
    found = [structure(between_others(similarity(table)), grid) for table in tables]
    shares = [each.shift_invariance for each in found if each is not None]
    assert sum(shares) / len(tables) == pytest.approx(toeplitz_share_of_noise(grid), rel=0.06)


def test_rows_plus_columns_are_told_from_noise() -> None:
    """A3: a_row + b_column scores 1; noise scores its dimensions, (H + W − 2)/(HW − 1)."""
    generator = torch.Generator().manual_seed(0)
    rows, columns = torch.randn(6, 1, 32, generator=generator), torch.randn(1, 5, 32, generator=generator)
    assert additive_share((rows + columns).flatten(0, 1), (6, 5)) == pytest.approx(1)
    noise = [additive_share(torch.randn(30, 32, generator=generator), (6, 5)) for _ in range(100)]
    assert sum(noise) / len(noise) == pytest.approx(9 / 29, rel=0.03)


def test_the_class_token_is_left_out_by_the_configuration() -> None:
    """A3: 16 patches and a class token; the table that is shown has 16 places, whatever 17 may look like."""
    finding = registry.look(subject_of("vit_pico_p4_32"), "positions")
    assert [row[1] for row in finding.table.rows] == [16, 16]
    assert {"learned", "sinusoidal", "grid", "similarity"} <= set(finding.pictures)
    assert finding.record["rotation error"] < 1e-6


def test_texts_and_sinusoidal_networks_have_positions_too() -> None:
    assert "24" in str(registry.look(subject_of("bert_tiny"), "positions").table.rows[0][1])
    sinusoidal = registry.look(subject_of("bert_tiny", positions="sinusoidal"), "positions")
    assert [row[0] for row in sinusoidal.table.rows] == ["sinusoidal"]


@pytest.mark.parametrize("name", ["mixer_pico_p4_32", "resnet8_cifar", "gmlp_text_tiny"])
def test_networks_without_positions_are_told_where_to_look(name: str) -> None:
    with pytest.raises(WeftError, match=r"has no positions: .* the lens gates shows"):
        registry.look(subject_of(name), "positions")
