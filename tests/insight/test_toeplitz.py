"""M5: how Toeplitz, how local and how symmetric a matrix is, against closed forms."""

from __future__ import annotations

from math import prod

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.insight import toeplitz
from weft.nn.blocks import Layout
from weft.nn.spatial import Toeplitz2dSpatial, ToeplitzSpatial

GRIDS = st.one_of(st.tuples(st.integers(3, 9)), st.tuples(st.integers(2, 5), st.integers(2, 5)))


def noise(grid: tuple[int, ...], seed: int, count: int = 1) -> torch.Tensor:
    tokens = prod(grid)
    return torch.randn(count, tokens, tokens, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@settings(deadline=None, max_examples=25)
@given(length=st.integers(2, 12), seed=st.integers(0, 99))
def test_an_exactly_toeplitz_matrix_scores_one(length: int, seed: int) -> None:
    """M5: tMLP's own matrix is its nearest Toeplitz matrix; with shuffled rows it scores less."""
    layer = ToeplitzSpatial(Layout((length,)))
    torch.nn.init.normal_(layer.weight, generator=torch.Generator().manual_seed(seed))
    found = toeplitz.structure(layer.matrix(length).detach(), (length,))
    assert found is not None and found.plane is None
    assert found.line == pytest.approx(1.0, abs=1e-9)
    if length > 4:
        control = toeplitz.structure_of_shuffled(layer.matrix(length).detach(), (length,))
        assert control is not None and control.line < 0.9


@settings(deadline=None, max_examples=25)
@given(rows=st.integers(2, 5), columns=st.integers(2, 5), seed=st.integers(0, 99))
def test_an_exactly_two_dimensional_toeplitz_matrix_scores_one_on_its_grid(rows: int, columns: int, seed: int) -> None:
    """M5: a value for each offset of rows and columns; on the flattened image it is not Toeplitz."""
    layer = Toeplitz2dSpatial(Layout((rows, columns)))
    torch.nn.init.normal_(layer.weight, generator=torch.Generator().manual_seed(seed))
    found = toeplitz.structure(layer.matrix(rows * columns).detach(), (rows, columns))
    assert found is not None and found.plane == pytest.approx(1.0, abs=1e-9)
    assert found.line < 1 - 1e-6


@settings(deadline=None, max_examples=25)
@given(grid=GRIDS, seed=st.integers(0, 99))
def test_nearest_is_nearest(grid: tuple[int, ...], seed: int) -> None:
    """The projection is idempotent and its residual is orthogonal to every Toeplitz matrix; the entries of one offset
    are equal. A flattened row of tokens knows fewer offsets than the grid, so its share is never the larger."""
    matrix = noise(grid, seed)[0]
    near = toeplitz.nearest_toeplitz(matrix, grid)
    torch.testing.assert_close(toeplitz.nearest_toeplitz(near, grid), near)
    other = toeplitz.nearest_toeplitz(noise(grid, seed + 1)[0], grid)
    assert float(((matrix - near) * other).sum()) == pytest.approx(0, abs=1e-9)
    at = [tuple(place) for place in toeplitz.places(grid).tolist()]
    by_offset: dict[tuple[int, ...], list[float]] = {}
    for i, a in enumerate(at):
        for j, b in enumerate(at):
            by_offset.setdefault(tuple(y - x for x, y in zip(a, b, strict=True)), []).append(float(matrix[i, j]))
    assert len(by_offset) == toeplitz.count_offsets(grid)
    step = tuple(y - x for x, y in zip(at[0], at[-1], strict=True))
    assert float(near[0, -1]) == pytest.approx(sum(by_offset[step]) / len(by_offset[step]))
    found = toeplitz.structure(matrix, grid)
    assert found is not None and (found.plane is None or found.plane >= found.line - 1e-12)


@pytest.mark.parametrize("grid", [(6,), (12,), (3, 4), (4, 4)])
def test_noise_scores_its_expectation(grid: tuple[int, ...]) -> None:
    """Shares, symmetry and locality of normal noise, averaged over many matrices, meet their closed forms."""
    many = [toeplitz.structure(matrix, grid) for matrix in noise(grid, 0, 1500)]
    assert all(found is not None for found in many)

    def mean(name: str) -> float:
        return sum(getattr(found, name) for found in many) / len(many)

    assert mean("line") == pytest.approx(2 / (prod(grid) + 1), rel=0.03)
    assert mean("shift_invariance") == pytest.approx(toeplitz.share_of_noise(grid), rel=0.03)
    assert mean("symmetry") == pytest.approx(toeplitz.symmetry_of_noise(prod(grid)), rel=0.01)
    assert mean("locality") == pytest.approx(0, abs=0.01)


@settings(deadline=None, max_examples=20)
@given(grid=GRIDS, constant=st.floats(-5, 5), seed=st.integers(0, 99))
def test_a_constant_neither_scores_nor_changes_a_score(grid: tuple[int, ...], constant: float, seed: int) -> None:
    """A constant matrix is Toeplitz, and would score 1: the mean is taken out first."""
    matrix = noise(grid, seed)[0]
    assert toeplitz.structure(torch.full_like(matrix, constant), grid) is None
    plain, moved = toeplitz.structure(matrix, grid), toeplitz.structure(matrix + constant, grid)
    assert plain is not None and moved is not None
    assert moved.line == pytest.approx(plain.line, abs=1e-6) and moved.reach == pytest.approx(plain.reach, abs=1e-6)


def test_the_diagonal_is_local_and_a_far_one_is_not() -> None:
    """Reach, locality and bandwidth of shifts by a few tokens; less the mean, a little energy is spread evenly."""
    tokens = 40
    for shift in (0, 1, 7):
        found = toeplitz.structure(torch.diag(torch.ones(tokens - shift), shift), (tokens,))
        assert found is not None
        assert found.bandwidth == shift
        assert found.reach == pytest.approx(shift, abs=0.5)
        assert found.line == pytest.approx(1)
    whole = toeplitz.structure(torch.eye(tokens), (tokens,))
    assert whole is not None and whole.symmetry == pytest.approx(1) and whole.locality > 0.97


def test_symmetry_tells_symmetric_from_antisymmetric() -> None:
    matrix = noise((7,), 3)[0]
    even, odd = matrix + matrix.T, matrix - matrix.T
    found = [toeplitz.structure(each, (7,)) for each in (even, odd)]
    assert [round(each.symmetry, 9) for each in found if each is not None] == [1, 0]


def test_a_twin_takes_the_noise_of_few_examples_out() -> None:
    """The mean of a few noisy Toeplitz matrices looks like noise; with a twin over others it scores 1 on average."""
    pure = toeplitz.nearest_toeplitz(noise((12,), 0)[0], (12,))
    means = pure + noise((12,), 1, 400)
    alone = [toeplitz.structure(each, (12,)) for each in means[:100]]
    assert sum(each.line for each in alone if each is not None) / 100 < 0.4
    together = toeplitz.structure(means[:200], (12,), means[200:])
    assert together is not None and together.line == pytest.approx(1, abs=0.15)
    assert toeplitz.structure(pure, (12,), pure) == toeplitz.structure(pure, (12,))


def test_a_stack_pools_the_energy_of_its_matrices() -> None:
    """A weak head counts little: shares are sums of energies over sums of energies."""
    strong, weak = noise((8,), 1)[0], 1e-4 * torch.eye(8, dtype=torch.float64)
    together, alone = toeplitz.structure(torch.stack([strong, weak]), (8,)), toeplitz.structure(strong, (8,))
    assert together is not None and alone is not None and together.line == pytest.approx(alone.line, abs=1e-5)
