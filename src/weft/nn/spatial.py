"""Matrices over tokens: dense, Toeplitz (tMLP), or two-dimensional Toeplitz, behind one method.

`matrix(tokens)` gives W of shape (tokens, tokens), with W[i, j] the weight of token j in the result for token i. A text
shorter than the network's maximum uses the upper left corner, so that padding never matters.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from weft.nn.blocks import Layout


class DenseSpatial(nn.Module):
    """S² free weights."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(layout.tokens, layout.tokens))

    def matrix(self, tokens: int) -> Tensor:
        return self.weight if tokens == self.weight.shape[0] else self.weight[:tokens, :tokens]


class ToeplitzSpatial(nn.Module):
    """2S−1 free weights, one for each offset j − i from −(S−1) to S−1: W[i, j] = weight[j − i + S − 1].

    Both sides are free: W[0, −1] (the last offset) and W[−1, 0] (the first) are different weights.
    """

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.tokens = layout.tokens
        self.weight = nn.Parameter(torch.empty(2 * layout.tokens - 1))

    def matrix(self, tokens: int) -> Tensor:
        windows = self.weight.unfold(0, self.tokens, 1)  # of a fixed size, so that a traced graph takes any length
        return windows[self.tokens - tokens :, :tokens].flip(0)


class Toeplitz2dSpatial(nn.Module):
    """(2H−1)(2W−1) free weights, one for each offset of rows and columns of an H×W grid."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        if len(layout.grid) != 2 or layout.extra:
            raise ValueError("a 2-D Toeplitz matrix needs a grid of rows and columns and no class token")
        self.rows, self.columns = layout.grid
        self.weight = nn.Parameter(torch.empty(2 * self.rows - 1, 2 * self.columns - 1))

    def matrix(self, tokens: int) -> Tensor:
        windows = self.weight.unfold(0, self.rows, 1).unfold(1, self.columns, 1)  # (H, W, H, W)
        return windows.flip(0, 1).reshape(tokens, tokens)


SPATIAL: dict[str, type[DenseSpatial] | type[ToeplitzSpatial] | type[Toeplitz2dSpatial]] = {
    "dense": DenseSpatial,
    "toeplitz": ToeplitzSpatial,
    "toeplitz2d": Toeplitz2dSpatial,
}
