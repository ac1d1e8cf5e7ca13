"""Convolutions with standardised weights (Qiao et al. 2019): each filter is used with mean zero and deviation one.

What such a convolution computes depends on the direction of its filters alone, so the size of activations does not
drift as the weights grow: BiT needs no batch statistics, and NFNet no norm at all.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weft.nn.convolution import pad_same


class StdConv2d(nn.Conv2d):
    """A convolution by (W − mean) / √(variance + ε) over each filter; ε = 1e-8 and no bias, as BiT has it."""

    def __init__(self, inputs: int, outputs: int, kernel: int, *, stride: int = 1, eps: float = 1e-8) -> None:
        super().__init__(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return self._conv_forward(x, standardised(self.weight, self.eps), None)


class ScaledStdConv2d(nn.Conv2d):
    """NFNet's: times a gain that is learned, over √fan-in, so that the variance of its input is kept; padded "same".

    `factor` is what the input is to be multiplied by: the filters are, which is a small part of the work.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, *, stride: int = 1, groups: int = 1, factor: float = 1.0
    ) -> None:
        super().__init__(inputs, outputs, kernel, stride=stride, groups=groups)
        self.gain = nn.Parameter(torch.ones(outputs, 1, 1, 1))
        self.eps, self.factor = 1e-5, factor

    def forward(self, x: Tensor) -> Tensor:
        weight = standardised(self.weight, self.eps, self.gain * (self.factor * self.weight[0].numel() ** -0.5))
        return self._conv_forward(pad_same(x, self.kernel_size[0], self.stride[0]), weight, self.bias)


def standardised(weight: Tensor, eps: float, deviation: Tensor | None = None) -> Tensor:
    """(outputs, …) with mean zero for each output, and deviation one or the one that is given, (outputs, 1, …).

    A group norm with an output a group: its kernel takes a quarter of the time of a layer norm and a product.
    """
    scale = None if deviation is None else deviation.flatten()
    return F.group_norm(weight.flatten(1)[None], len(weight), scale, None, eps).view_as(weight)
