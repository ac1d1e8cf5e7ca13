"""How local and how shift-invariant a matrix over tokens is, on one scale for gates, attention and convolutions.

A matrix W (tokens, tokens) over a grid is shift-invariant if W[i, j] depends on the offset from i to j alone: Toeplitz
in one dimension, block-Toeplitz with Toeplitz blocks on rows and columns. The nearest such matrix, in squares, has the
mean of each offset. All figures are shares of the energy ‖W‖² that is left when the mean of W is taken out, as a
constant matrix is Toeplitz too. They take stacks (…, tokens, tokens), and pool the energy of all matrices of a stack.

A matrix that is itself a mean over examples carries noise, which has energy of its own and would make it look less
Toeplitz the fewer the examples. Given a twin, the mean over other examples, energies are products of the two: what is
noise in one has no part in the other, on average.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import torch
from torch import Tensor

Grid = tuple[int, ...]  # (length,) of a text, (rows, columns) of an image

MOST = 0.9  # share of the energy that the bandwidth holds
SHUFFLES = 16  # of the rows, over which the control is averaged


def places(grid: Grid) -> Tensor:
    """Where each token lies: (tokens, dimensions), in reading order."""
    return torch.cartesian_prod(*(torch.arange(side) for side in grid)).reshape(prod(grid), len(grid))


def distances(grid: Grid) -> Tensor:
    """Euclidean distance of each two tokens, in tokens: (tokens, tokens)."""
    at = places(grid).double()
    return (at[:, None] - at[None]).square().sum(-1).sqrt()


@lru_cache(maxsize=16)
def offset_numbers(grid: Grid) -> Tensor:
    """A number for each pair of tokens, the same where the offset from row to column is: (tokens, tokens)."""
    at = places(grid)
    steps = at[None] - at[:, None] + torch.tensor(grid) - 1  # from 0 to 2·side − 2 in each dimension
    number = torch.zeros(steps.shape[:2], dtype=torch.long)
    for dimension, side in enumerate(grid):
        number = number * (2 * side - 1) + steps[..., dimension]
    return number


def count_offsets(grid: Grid) -> int:
    """Free values of a Toeplitz matrix over a grid: 2S−1, or (2H−1)(2W−1)."""
    return prod(2 * side - 1 for side in grid)


def nearest_toeplitz(matrices: Tensor, grid: Grid) -> Tensor:
    """The Toeplitz matrices closest in squares: each entry becomes the mean of its offset; (…, tokens, tokens)."""
    flat, numbers = matrices.flatten(-2), offset_numbers(grid).flatten()
    sums = torch.zeros(*flat.shape[:-1], count_offsets(grid), dtype=flat.dtype)
    sums.index_add_(-1, numbers, flat)
    counts = torch.bincount(numbers, minlength=count_offsets(grid))
    return (sums / counts)[..., numbers].reshape(matrices.shape)


def centred(matrices: Tensor) -> Tensor:
    """Each matrix less its mean, in float64."""
    matrices = matrices.double()
    return matrices - matrices.mean((-2, -1), keepdim=True)


def shuffled_rows(matrices: Tensor, seed: int = 0) -> Tensor:
    """The rows of all matrices in one random order: the same weights, at other places."""
    order = torch.randperm(matrices.shape[-2], generator=torch.Generator().manual_seed(seed))
    return matrices[..., order, :]


@dataclass(frozen=True)
class Structure:
    """Figures of one matrix, or of a stack.

    `line` and `plane` are the shares of the energy in the nearest Toeplitz matrix over one dimension and over the
    grid's two (None for text); `reach` is the mean distance that the energy spans, in tokens, and `bandwidth` the
    distance within which nine tenths of it lie; `locality` is 1 where all of it is on the diagonal and 0 where it is
    spread evenly; `symmetry` is the share in (W + Wᵀ)/2.
    """

    line: float
    plane: float | None
    locality: float
    reach: float
    bandwidth: float
    symmetry: float

    @property
    def shift_invariance(self) -> float:
        """The share in the nearest Toeplitz matrix over the tokens' own grid."""
        return self.line if self.plane is None else self.plane


def structure(matrices: Tensor, grid: Grid, twin: Tensor | None = None) -> Structure | None:
    """The figures of (…, tokens, tokens) over `grid`; None where the matrices are constant, so that nothing is left."""
    scale = float(matrices.double().square().sum())
    rest = centred(matrices)
    other = rest if twin is None else centred(twin)
    spread = (rest * other).reshape(-1, *rest.shape[-2:]).sum(0)
    energy = float(spread.sum())
    if energy <= 1e-12 * scale:
        return None

    def share(project: Callable[[Tensor], Tensor]) -> float:
        return float((project(rest) * project(other)).sum()) / energy

    apart = distances(grid)
    reach = float((spread * apart).sum()) / energy
    return Structure(
        line=share(lambda part: nearest_toeplitz(part, (prod(grid),))),
        plane=share(lambda part: nearest_toeplitz(part, grid)) if len(grid) == 2 else None,
        locality=1 - reach / float(apart.mean()),
        reach=reach,
        bandwidth=bandwidth(spread, apart),
        symmetry=share(lambda part: (part + part.transpose(-2, -1)) / 2),
    )


def bandwidth(spread: Tensor, apart: Tensor) -> float:
    """The least distance within which `MOST` of the energy (tokens, tokens) lies."""
    order = apart.flatten().argsort(stable=True)
    within = spread.flatten()[order].cumsum(0).cummax(0).values
    first = int(torch.searchsorted(within, MOST * within[-1] * (1 - 1e-12)))
    return float(apart.flatten()[order[min(first, len(order) - 1)]])


def structure_of_shuffled(matrices: Tensor, grid: Grid, twin: Tensor | None = None) -> Structure | None:
    """The control: mean figures of the same matrices with their rows in random orders."""
    twins = [None if twin is None else shuffled_rows(twin, seed) for seed in range(SHUFFLES)]
    found = [structure(shuffled_rows(matrices, seed), grid, twins[seed]) for seed in range(SHUFFLES)]
    known = [each for each in found if each is not None]
    if not known:
        return None
    planes = [each.plane for each in known if each.plane is not None]
    mean = {
        name: sum(getattr(each, name) for each in known) / len(known)
        for name in ("line", "locality", "reach", "bandwidth", "symmetry")
    }
    return Structure(**mean, plane=sum(planes) / len(planes) if planes else None)


def share_of_noise(grid: Grid) -> float:
    """What a matrix of independent normal values scores on average: dimensions over dimensions, less the mean's one.

    Normal noise has no preferred direction, so a subspace holds the share of its energy that it has of the dimensions:
    (2S−2)/(S²−1) = 2/(S+1) in one dimension, and ((2H−1)(2W−1)−1)/((HW)²−1) on a grid.
    """
    return (count_offsets(grid) - 1) / (prod(grid) ** 2 - 1)


def symmetry_of_noise(tokens: int) -> float:
    """The same for the symmetric part, of S(S+1)/2 dimensions: (S+2)/(2(S+1))."""
    return (tokens + 2) / (2 * (tokens + 1))
