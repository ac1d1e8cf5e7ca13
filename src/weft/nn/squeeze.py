"""Squeeze-and-excitation (Hu et al. 2018): each channel is scaled by what the means of all channels say about it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from weft.nn.activations import activation


class SqueezeExcite(nn.Module):
    """x · σ(W₂ act(W₁ x̄)), x̄ the mean of each channel over the image: (batch, channels, height, width) in and out.

    `width` is that of the layer between; through x̄ every value sees the whole image.
    """

    def __init__(self, channels: int, width: int, act: str = "relu") -> None:
        super().__init__()
        self.fc1 = nn.Linear(channels, width)
        self.act = activation(act, inplace=True)
        self.fc2 = nn.Linear(width, channels)

    @staticmethod
    def cost(channels: int, width: int) -> tuple[int, int]:
        """Parameters and multiply-adds."""
        return 2 * channels * width + channels + width, 2 * channels * width

    def forward(self, x: Tensor, gain: Tensor | None = None) -> Tensor:
        """`gain` multiplies the result; as a number a channel it costs nothing."""
        gate = torch.sigmoid(self.fc2(self.act(self.fc1(x.mean((2, 3))))))
        return x * (gate if gain is None else gate * gain)[:, :, None, None]
