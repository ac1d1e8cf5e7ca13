"""C1, C3 and C5: convolutions and locally connected layers against loops over positions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.networks.registry import create_model
from weft.nn.convolution import ConvBlock1d, ConvBlock2d, LocallyConnected2d


def naive_convolution(image: np.ndarray, kernels: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """C1, written out: (I∗K)(i, j) = Σ I(i+m, j+n) K(m, n), for an r×n×n image and D kernels of r×m×m."""
    filters, _, side, _ = kernels.shape
    rows, columns = image.shape[1] - side + 1, image.shape[2] - side + 1
    result = np.zeros((filters, rows, columns))
    for d in range(filters):
        for i in range(rows):
            for j in range(columns):
                result[d, i, j] = (image[:, i : i + side, j : j + side] * kernels[d]).sum() + bias[d]
    return result


@settings(deadline=None, max_examples=20)
@given(n=st.integers(3, 8), m=st.integers(1, 3), r=st.integers(1, 3), d=st.integers(1, 4), seed=st.integers(0, 99))
def test_convolution_has_the_sizes_and_values_of_the_formula(n: int, m: int, r: int, d: int, seed: int) -> None:
    """C1: n×n×r with D filters m×m×r gives (n−m+1)²×D; no flip of the kernel."""
    torch.manual_seed(seed)
    block = ConvBlock2d(r, d, m, norm=False, act="identity").double()
    image = torch.randn(1, r, n, n, dtype=torch.float64)
    found = block(image)
    assert found.shape == (1, d, n - m + 1, n - m + 1)
    expected = naive_convolution(image[0].numpy(), block.conv.weight.detach().numpy(), block.conv.bias.detach().numpy())
    np.testing.assert_allclose(found[0].detach().numpy(), expected, atol=1e-12)


@settings(deadline=None, max_examples=20)
@given(n=st.integers(3, 12), m=st.integers(1, 3), r=st.integers(1, 3), d=st.integers(1, 4), seed=st.integers(0, 99))
def test_one_dimensional_convolution_is_the_same_sum(n: int, m: int, r: int, d: int, seed: int) -> None:
    """C1 over sequences: n×r with D filters m×r gives (n−m+1)×D."""
    torch.manual_seed(seed)
    block = ConvBlock1d(r, d, m, norm=False, act="identity").double()
    line = torch.randn(1, r, n, dtype=torch.float64)
    weight, bias = block.conv.weight.detach(), block.conv.bias.detach()
    windows = [(line[0, :, i : i + m] * weight).sum((1, 2)) + bias for i in range(n - m + 1)]
    torch.testing.assert_close(block(line)[0], torch.stack(windows, dim=1))


@pytest.mark.parametrize("norm", [True, False])
def test_a_block_is_convolution_then_norm_then_activation(norm: bool) -> None:
    """C3: the order, and no bias that the norm would cancel."""
    torch.manual_seed(0)
    block, x = ConvBlock2d(2, 5, 3, stride=2, padding=1, norm=norm), torch.randn(4, 2, 9, 9)
    y = torch.nn.functional.conv2d(x, block.conv.weight, block.conv.bias, stride=2, padding=1)
    if norm:
        y = (y - y.mean((0, 2, 3), keepdim=True)) / (y.var((0, 2, 3), keepdim=True, unbiased=False) + 1e-5).sqrt()
    assert (block.conv.bias is None) == norm
    torch.testing.assert_close(block(x), y.relu(), atol=1e-5, rtol=1e-5)


@settings(deadline=None, max_examples=15)
@given(
    height=st.integers(3, 6),
    width=st.integers(3, 6),
    kernel=st.integers(1, 3),
    stride=st.integers(1, 2),
    inputs=st.integers(1, 2),
    outputs=st.integers(1, 3),
)
def test_a_locally_connected_layer_is_a_loop_over_positions(
    height: int, width: int, kernel: int, stride: int, inputs: int, outputs: int
) -> None:
    """C5: each position has weights of its own, and sees its own window only."""
    torch.manual_seed(height * 10 + width)
    layer = LocallyConnected2d(inputs, outputs, kernel, (height, width), stride=stride).double()
    torch.nn.init.normal_(layer.bias)
    x = torch.randn(2, inputs, height, width, dtype=torch.float64)
    rows, columns = (height - kernel) // stride + 1, (width - kernel) // stride + 1
    expected = torch.zeros(2, outputs, rows, columns, dtype=torch.float64)
    for i in range(rows):
        for j in range(columns):
            window = x[:, :, i * stride : i * stride + kernel, j * stride : j * stride + kernel].flatten(1)
            expected[:, :, i, j] = window @ layer.weight[i * columns + j] + layer.bias[:, i, j]
    torch.testing.assert_close(layer(x), expected)


def test_a_locally_connected_layer_with_equal_weights_is_a_convolution() -> None:
    """C5: sharing is all that tells the two apart."""
    torch.manual_seed(0)
    layer, x = LocallyConnected2d(3, 4, 3, (7, 8)), torch.randn(2, 3, 7, 8)
    kernel = torch.randn(4, 3, 3, 3)
    with torch.no_grad():
        layer.weight.copy_(kernel.flatten(1).T.expand_as(layer.weight))
    torch.testing.assert_close(layer(x), torch.nn.functional.conv2d(x, kernel), atol=1e-5, rtol=1e-5)


def test_the_slides_comparison_of_three_ways_to_see_an_image() -> None:
    """C5: 200×200 pixels, 400,000 hidden units. Fully connected 16 billion weights, locally connected 10×10 40 million,
    convolution a handful. None of them is allocated."""
    with torch.device("meta"):
        full = create_model("mlp", img_size=200, in_chans=1, hidden=(400_000,), num_classes=0)
        local = LocallyConnected2d(1, 10, 10, (209, 209))  # a border keeps all 200×200 positions, ten units at each
        shared = ConvBlock2d(1, 10, 10, norm=False)
    assert full.layers[0].weight.numel() == 16_000_000_000
    assert local.height * local.width * 10 == 400_000
    assert local.weight.numel() == 40_000_000
    assert shared.conv.weight.numel() == 1_000
