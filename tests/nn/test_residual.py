"""C4: residual blocks and their two shortcuts."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from weft.networks.resnet import BasicBlock, Bottleneck, PaddedShortcut, shortcut


def test_option_a_takes_every_second_pixel_and_pads_channels_with_zeros() -> None:
    """C4: no parameters; the old channels stand in the middle of the new ones."""
    x = torch.randn(2, 4, 6, 6)
    layer = PaddedShortcut(4, 8, 2)
    y = layer(x)
    assert y.shape == (2, 8, 3, 3) and not list(layer.parameters())
    assert torch.equal(y[:, 2:6], x[:, :, ::2, ::2])
    assert y[:, :2].eq(0).all() and y[:, 6:].eq(0).all()


def test_a_shortcut_is_there_only_where_shapes_differ() -> None:
    """C4: identity shortcuts cost nothing."""
    assert shortcut(8, 8, 1, padded=False) is None
    assert isinstance(shortcut(8, 16, 2, padded=True), PaddedShortcut)
    assert isinstance(shortcut(8, 8, 2, padded=False), nn.Sequential)
    assert isinstance(shortcut(8, 32, 1, padded=False), nn.Sequential)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_basic_block_is_two_convolutions_and_a_sum(stride: int, padded: bool) -> None:
    """C4: relu(shortcut(x) + bn(conv(relu(bn(conv(x)))))), and the input is left as it was."""
    torch.manual_seed(0)
    block = BasicBlock(4, 4 * stride, stride, padded=padded).eval()
    x = torch.randn(2, 4, 6, 6)
    before = x.clone()
    y = F.conv2d(x, block.conv1.weight, stride=stride, padding=1) / (1 + 1e-5) ** 0.5
    y = F.conv2d(y.relu(), block.conv2.weight, padding=1) / (1 + 1e-5) ** 0.5
    y = y + (x if block.downsample is None else block.downsample(x))
    torch.testing.assert_close(block(x), y.relu(), atol=1e-5, rtol=1e-5)
    assert torch.equal(x, before)


def test_a_bottleneck_widens_four_times_and_strides_in_the_middle() -> None:
    """C4: 1×1, 3×3 with the stride, 1×1 up to four times the planes."""
    torch.manual_seed(0)
    block = Bottleneck(8, 4, 2).eval()
    x = torch.randn(2, 8, 6, 6)
    assert (block.conv1.stride, block.conv2.stride, block.conv3.stride) == ((1, 1), (2, 2), (1, 1))
    scale = (1 + 1e-5) ** 0.5
    y = F.conv2d(x, block.conv1.weight).div(scale).relu()
    y = F.conv2d(y, block.conv2.weight, stride=2, padding=1).div(scale).relu()
    y = F.conv2d(y, block.conv3.weight) / scale + block.downsample(x)
    assert block(x).shape == (2, 16, 3, 3)
    torch.testing.assert_close(block(x), y.relu(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", [BasicBlock, Bottleneck])
def test_a_silenced_branch_leaves_the_shortcut(kind: type[BasicBlock] | type[Bottleneck]) -> None:
    """C4: with the last norm at zero a block starts as relu(x)."""
    block = kind(4 * kind.expansion, 4)
    nn.init.zeros_(block.last_norm.weight)  # type: ignore[arg-type]
    x = torch.randn(2, 4 * kind.expansion, 5, 5)
    torch.testing.assert_close(block(x), x.relu())
