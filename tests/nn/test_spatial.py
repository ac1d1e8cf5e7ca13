"""Toeplitz matrices are two-sided, in one dimension and in two."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.nn.blocks import Layout
from weft.nn.spatial import SPATIAL, DenseSpatial, Toeplitz2dSpatial, ToeplitzSpatial


def numbered(kind: str, layout: Layout) -> torch.nn.Module:
    """A spatial weight whose free values are all different."""
    spatial = SPATIAL[kind](layout)
    torch.nn.init.normal_(spatial.weight)
    return spatial


@settings(deadline=None, max_examples=20)
@given(size=st.integers(1, 9), used=st.integers(1, 9))
def test_toeplitz_is_constant_along_its_diagonals(size: int, used: int) -> None:
    """M5: W[i, j] depends on j − i alone, with 2S−1 free values; a shorter text reads the middle offsets."""
    used = min(size, used)
    spatial = numbered("toeplitz", Layout((size,)))
    assert spatial.weight.numel() == 2 * size - 1
    matrix = spatial.matrix(used)
    for i in range(used):
        for j in range(used):
            assert matrix[i, j] == spatial.weight[j - i + size - 1]


@settings(deadline=None, max_examples=15)
@given(rows=st.integers(1, 4), columns=st.integers(1, 4))
def test_two_dimensional_toeplitz_has_a_value_per_row_and_column_offset(rows: int, columns: int) -> None:
    """M5: W[(r, c), (r', c')] depends on r' − r and c' − c alone; (2H−1)(2W−1) free values."""
    spatial = numbered("toeplitz2d", Layout((rows, columns)))
    assert spatial.weight.numel() == (2 * rows - 1) * (2 * columns - 1)
    matrix = spatial.matrix(rows * columns)
    for a in range(rows * columns):
        for b in range(rows * columns):
            down, right = b // columns - a // columns, b % columns - a % columns
            assert matrix[a, b] == spatial.weight[down + rows - 1, right + columns - 1]


@pytest.mark.parametrize(("kind", "grid"), [("dense", (5,)), ("toeplitz", (5,)), ("toeplitz2d", (2, 3))])
def test_both_corners_are_independent_and_trainable(kind: str, grid: tuple[int, ...]) -> None:
    """A "circulant" lower-triangular matrix sees the left only. W[0, −1] and W[−1, 0] must be two weights."""
    spatial = numbered(kind, Layout(grid))
    tokens = Layout(grid).tokens
    corners = []
    for i, j in ((0, tokens - 1), (tokens - 1, 0)):
        (gradient,) = torch.autograd.grad(spatial.matrix(tokens)[i, j], spatial.weight)
        assert gradient.abs().sum() == 1, "the corner must be exactly one free value"
        corners.append(gradient)
    assert not torch.equal(*corners)
    matrix = spatial.matrix(tokens)
    assert (matrix != 0).all(), "no half of the matrix may be zero"


@pytest.mark.parametrize(("kind", "grid"), [("dense", (6,)), ("toeplitz", (6,)), ("toeplitz2d", (2, 3))])
def test_every_free_value_is_used(kind: str, grid: tuple[int, ...]) -> None:
    """M5: no free value is dead: each gets as much gradient as it has places in the matrix."""
    spatial = numbered(kind, Layout(grid))
    spatial.matrix(6).sum().backward()
    assert (spatial.weight.grad >= 1).all()
    assert spatial.weight.grad.sum() == 36


def test_a_shorter_text_uses_the_upper_left_corner() -> None:
    """M5: so that padding after it never matters."""
    for kind in ("dense", "toeplitz"):
        spatial = numbered(kind, Layout((7,)))
        assert torch.equal(spatial.matrix(4), spatial.matrix(7)[:4, :4])


def test_a_flattened_image_under_a_one_dimensional_toeplitz_mixes_rows_and_columns() -> None:
    """The step to the next row and the step of a whole width to the right are one offset in 1-D,
    two in 2-D. That is why only the 2-D form can be carried to another width."""
    rows, columns = 3, 4
    flat, grid = numbered("toeplitz", Layout((rows, columns))), numbered("toeplitz2d", Layout((rows, columns)))
    one_right_across_the_edge, one_right = (3, 4), (0, 1)  # from the end of a row to the start of the next
    assert flat.matrix(12)[one_right] == flat.matrix(12)[one_right_across_the_edge]
    assert grid.matrix(12)[one_right] != grid.matrix(12)[one_right_across_the_edge]


def test_two_dimensional_toeplitz_needs_a_grid_without_a_class_token() -> None:
    for layout in (Layout((6,)), Layout((2, 3), extra=1)):
        with pytest.raises(ValueError, match="needs a grid"):
            Toeplitz2dSpatial(layout)


def test_a_layout_counts_its_tokens() -> None:
    """The class token is stated, never guessed from a square number."""
    assert Layout((14, 14)).tokens == 196
    assert Layout((14, 14), extra=1).tokens == 197
    assert DenseSpatial(Layout((3, 3), extra=1)).weight.shape == (10, 10)
    assert ToeplitzSpatial(Layout((3, 3), extra=1)).weight.shape == (19,)
