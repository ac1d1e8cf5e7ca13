"""Positions: the sinusoidal table (A2) and learned ones."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def sinusoidal_table(tokens: int, dim: int, base: float = 10000.0) -> Tensor:
    """(tokens, dim) with p_t(2i) = sin(t / base^{2i/d}) and p_t(2i+1) = cos of the same (Vaswani et al. 2017).

    Moving by φ tokens rotates each pair (2i, 2i+1) by the angle φ / base^{2i/d}, whatever t is.
    """
    if dim % 2:
        raise ValueError(f"sinusoidal positions need an even number of channels, not {dim}")
    rates = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angles = torch.arange(tokens, dtype=torch.float64)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()


class LearnedPositions(nn.Module):
    """Adds a trained vector to each token: (batch, tokens, channels) in and out, `tokens` up to the table's length."""

    def __init__(self, tokens: int, dim: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(tokens, dim))
        self.initialise()

    def initialise(self) -> None:
        """Deviation 0.02, as ViT and BERT do."""
        nn.init.trunc_normal_(self.table, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.shape[1]]


class SinusoidalPositions(nn.Module):
    """Adds the sinusoidal table; nothing is trained and nothing is stored."""

    table: Tensor

    def __init__(self, tokens: int, dim: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal_table(tokens, dim), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.shape[1]]


def positions(kind: str, tokens: int, dim: int) -> nn.Module:
    """`none`, `learned` or `sinusoidal`."""
    if kind == "none":
        return nn.Identity()
    return {"learned": LearnedPositions, "sinusoidal": SinusoidalPositions}[kind](tokens, dim)
