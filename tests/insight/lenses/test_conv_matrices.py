"""C1, C5, M5: a convolution as a matrix over patches is exactly Toeplitz and local; unshared weights are only local."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from weft.insight import toeplitz
from weft.insight.lenses.gates.conv_matrices import convolution_matrices, cut, local_matrices
from weft.nn.convolution import LocallyConnected2d


@torch.no_grad()
def test_a_convolution_on_its_own_pixels_is_the_layer() -> None:
    """C1: on a grid of at most 64 pixels, matrix times image is what the layer computes."""
    torch.manual_seed(0)
    layer = nn.Conv2d(1, 3, 3, padding=1, bias=False)
    matrices, grid = convolution_matrices(layer.weight, (6, 5), layer.stride, layer.dilation)
    assert grid == (6, 5) and matrices.shape == (3, 30, 30)
    image = torch.randn(1, 1, 6, 5)
    torch.testing.assert_close((matrices @ image.flatten()).reshape(1, 3, 6, 5), layer(image))


@pytest.mark.parametrize(("side", "kernel", "stride"), [(32, 3, 1), (16, 3, 2), (8, 5, 1), (28, 5, 1), (14, 7, 2)])
def test_every_convolution_is_shift_invariant_and_local(side: int, kernel: int, stride: int) -> None:
    """M5, C6: share 1 in the nearest two-dimensional Toeplitz matrix, whatever kernel and stride; close to 0 reach."""
    weight = torch.randn(8, 4, kernel, kernel, generator=torch.Generator().manual_seed(0))
    matrices, grid = convolution_matrices(weight, (side, side), (stride, stride), (1, 1))
    found = toeplitz.structure(matrices, grid)
    assert found is not None
    assert found.plane == pytest.approx(1, abs=1e-6)
    assert found.locality > 0.3
    shuffled = toeplitz.structure_of_shuffled(matrices, grid)
    assert shuffled is not None and shuffled.plane is not None and shuffled.plane < 0.3


def test_a_convolution_over_words_is_toeplitz() -> None:
    weight = torch.randn(4, 4, 5, generator=torch.Generator().manual_seed(0))
    matrices, grid = convolution_matrices(weight, (40,), (1,), (1,))
    found = toeplitz.structure(matrices, grid)
    assert grid == (40,) and found is not None and found.line == pytest.approx(1, abs=1e-6) and found.bandwidth <= 2


def test_a_locally_connected_layer_is_local_but_not_shift_invariant() -> None:
    """C5: as local as the convolution of its size; with equal weights at every place it is that convolution."""
    torch.manual_seed(0)
    layer = LocallyConnected2d(2, 3, 3, (10, 10))
    matrices, grid = local_matrices(layer)
    found = toeplitz.structure(matrices, grid)
    assert grid == (8, 8) and found is not None and found.plane is not None
    assert found.plane < 0.2 and found.locality > 0.5
    with torch.no_grad():
        layer.weight.copy_(layer.weight[:1].expand_as(layer.weight))
    shared = toeplitz.structure(local_matrices(layer)[0], grid)
    assert shared is not None and shared.plane == pytest.approx(1, abs=1e-6)
    kernels = layer.weight[0].detach().reshape(2, 3, 3, 3).permute(3, 0, 1, 2)  # (outputs, inputs, 3, 3)
    same = convolution_matrices(kernels.transpose(0, 1), (8, 8), (1, 1), (1, 1))[0]
    torch.testing.assert_close(local_matrices(layer)[0], same)


def test_grids_are_cut_into_at_most_64_patches() -> None:
    assert cut((32, 32)) == ((8, 8), (4, 4))
    assert cut((7, 13)) == ((7, 6), (1, 2))
    assert cut((128,)) == ((1, 64), (1, 2))
