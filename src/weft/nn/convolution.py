"""Convolution blocks and the locally connected layer, which is local but shares no weights.

Convolution here is what the lecture slides and every library compute, a correlation:
(I∗K)(i, j) = Σ_m Σ_n I(i+m, j+n) K(m, n). An n×n×r input and D filters of m×m×r give (n−m+1)²×D values.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weft.nn.activations import activation
from weft.nn.norm import BatchNorm1d, BatchNorm2d


class _ConvBlock(nn.Sequential):
    """Convolution → batch norm (optional) → activation; the norm makes the convolution's bias needless."""

    layer: type[nn.Conv1d] | type[nn.Conv2d]
    norm_layer: type[BatchNorm1d] | type[BatchNorm2d]

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        *,
        stride: int = 1,
        padding: int = 0,
        norm: bool = True,
        act: str = "relu",
    ) -> None:
        super().__init__()
        self.conv = self.layer(inputs, outputs, kernel, stride=stride, padding=padding, bias=not norm)
        self.norm = self.norm_layer(outputs) if norm else nn.Identity()
        self.act = activation(act)


class ConvBlock2d(_ConvBlock):
    """A convolution block over images: (batch, channels, height, width) in and out."""

    layer, norm_layer = nn.Conv2d, BatchNorm2d


class ConvBlock1d(_ConvBlock):
    """A convolution block over sequences: (batch, channels, length) in and out."""

    layer, norm_layer = nn.Conv1d, BatchNorm1d


def pad_same(x: Tensor, kernel: int, stride: int) -> Tensor:
    """TensorFlow's padding "same": zeros around (batch, channels, height, width) so that ⌈side/stride⌉ windows fit.

    An odd number of zeros has the last one below and to the right, where padding on both sides alike has one more.
    """
    pads = []
    for side in (x.shape[3], x.shape[2]):
        total = max((-(-side // stride) - 1) * stride + kernel - side, 0)
        pads += [total // 2, total - total // 2]
    return F.pad(x, pads) if any(pads) else x


class SameConv2d(nn.Conv2d):
    """A convolution with TensorFlow's padding, which depends on the side of the image where the stride is not one."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(pad_same(x, self.kernel_size[0], self.stride[0]))


def convolution(
    inputs: int, outputs: int, kernel: int, *, stride: int = 1, groups: int = 1, same: bool = False
) -> nn.Conv2d:
    """A convolution without bias of an odd kernel, padded on both sides alike or, for `same`, as TensorFlow does."""
    if same and stride > 1:  # otherwise the two agree
        return SameConv2d(inputs, outputs, kernel, stride=stride, groups=groups, bias=False)
    return nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, groups=groups, bias=False)


class LocallyConnected2d(nn.Module):
    """Each output position has filters of its own: (batch, inputs, H, W) → (batch, outputs, H', W').

    One batched product over all positions: the windows, (positions, batch, inputs·k²), times the
    weights, (positions, inputs·k², outputs).
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, size: tuple[int, int], *, stride: int = 1) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride
        self.height, self.width = ((side - kernel) // stride + 1 for side in size)
        positions = self.height * self.width
        self.weight = nn.Parameter(torch.empty(positions, inputs * kernel**2, outputs))
        self.bias = nn.Parameter(torch.empty(outputs, self.height, self.width))
        self.initialise()

    def initialise(self) -> None:
        """He et al. 2015 for each position: deviation √(2 / fan-in); biases zero."""
        nn.init.normal_(self.weight, std=(2 / self.weight.shape[1]) ** 0.5)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        windows = F.unfold(x, self.kernel, stride=self.stride).permute(2, 0, 1)
        y = torch.bmm(windows, self.weight)  # (positions, batch, outputs)
        return y.permute(1, 2, 0).unflatten(2, (self.height, self.width)) + self.bias

    def extra_repr(self) -> str:
        return f"kernel={self.kernel}, stride={self.stride}, output={self.height}×{self.width}"
