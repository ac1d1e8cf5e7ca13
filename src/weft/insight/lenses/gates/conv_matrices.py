"""A convolution as a matrix over patches: light one patch of its input at a time, and see what each patch answers.

The layer's grid is cut into at most 64 patches, as those of a token network are, and an answer is averaged over its
patch. A stride is followed: the patches of what comes out are those of what goes in. Borders are filled with zeros, and
the window is centred. Of the many pairs of an input and an output channel, a few are taken at random.
"""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor
from torch.nn import functional as F

from weft.insight.toeplitz import Grid
from weft.nn.convolution import LocallyConnected2d

PATCHES = 64  # as a 32×32 image has with patches of 4×4
PAIRS = 16  # pairs of channels


def convolution_matrices(
    weight: Tensor, grid: Grid, stride: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[Tensor, Grid]:
    """Matrices (pairs, S, S) of some kernels of `weight` (outputs, inputs, …), whose answers lie on `grid`; patches."""
    kernels = chosen(weight.flatten(0, 1))[:, None]  # (pairs, 1, …)
    if len(grid) == 1:  # a sequence is an image of one row
        kernels, stride, dilation = kernels[:, :, None], (1, *stride), (1, *dilation)
    tokens, cell = cut(grid)
    lit = impulses(tokens, cell, stride[-2:])
    lit = centred_padding(lit, [(k - 1) * d for k, d in zip(kernels.shape[2:], dilation, strict=True)])
    answers = F.conv2d(lit, kernels, stride=stride, dilation=dilation)  # (S, pairs, rows, columns)
    answers = F.avg_pool2d(answers, cell).flatten(2)
    return answers.permute(1, 2, 0), tokens[-len(grid) :]


def local_matrices(layer: LocallyConnected2d) -> tuple[Tensor, Grid]:
    """The same for a layer whose every place has kernels of its own."""
    tokens, cell = cut((layer.height, layer.width))
    rows, columns = (count * side for count, side in zip(tokens, cell, strict=True))
    weight = layer.weight.detach().unflatten(0, (layer.height, layer.width))[:rows, :columns].flatten(0, 1)
    positions, _, outputs = weight.shape
    windows = weight.reshape(positions, -1, layer.kernel**2, outputs).permute(1, 3, 0, 2)  # (inputs, outputs, P, k²)
    kernels = chosen(windows.flatten(0, 1))
    lit = centred_padding(impulses(tokens, cell, (layer.stride, layer.stride)), [layer.kernel - 1] * 2)
    seen = F.unfold(lit, layer.kernel, stride=layer.stride)  # (S, k², P)
    answers = torch.einsum("qpk,skp->qsp", kernels, seen).unflatten(2, (rows, columns))
    return F.avg_pool2d(answers, cell).flatten(2).transpose(1, 2), tokens


def chosen(kernels: Tensor, count: int = PAIRS) -> Tensor:
    """`count` of the kernels (pairs of channels, …), always the same ones."""
    order = torch.randperm(len(kernels), generator=torch.Generator().manual_seed(0))
    return kernels[order[:count].sort().values]


def cut(grid: Grid) -> tuple[Grid, Grid]:
    """Patches along each of two sides, and how many pixels a patch has; what is left over is cut off."""
    grid = (1, *grid) if len(grid) == 1 else grid
    most = PATCHES if grid[0] == 1 else int(PATCHES**0.5)
    cell = tuple(-(-side // most) for side in grid)
    return tuple(side // each for side, each in zip(grid, cell, strict=True)), cell


def impulses(tokens: Grid, cell: Grid, stride: tuple[int, ...]) -> Tensor:
    """One image a patch, in which that patch alone is 1: (S, 1, rows, columns), before the stride."""
    patches = torch.eye(prod(tokens)).reshape(-1, 1, *tokens)
    for dimension, (side, step) in enumerate(zip(cell, stride, strict=True)):
        patches = patches.repeat_interleave(side * step, dim=2 + dimension)
    return patches


def centred_padding(x: Tensor, missing: list[int]) -> Tensor:
    """Zeros around (…, rows, columns), so that a window that spans `missing` more than a pixel stands in the middle."""
    down, right = missing
    return F.pad(x, (right // 2, right - right // 2, down // 2, down - down // 2))
