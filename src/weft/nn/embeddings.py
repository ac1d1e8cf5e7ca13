"""How images and text become tokens: non-overlapping patches, and WordPiece ids."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weft.nn.noise import Dropout


class PatchEmbed(nn.Module):
    """Cuts an image into P×P patches that do not overlap and embeds each: (B, c, H, W) → (B, HW/P², channels).

    The weights have the shape of the equivalent convolution, (channels, c, P, P). The product itself is a plain matrix
    product over flattened patches, which is faster than a strided convolution on the processors measured.
    """

    def __init__(self, in_chans: int, dim: int, patch: int) -> None:
        super().__init__()
        self.patch = patch
        self.weight = nn.Parameter(torch.empty(dim, in_chans, patch, patch))
        self.bias = nn.Parameter(torch.empty(dim))
        self.initialise()

    def initialise(self) -> None:
        """LeCun normal over the fan-in, biases zero, as in the published ViT and Mixer code."""
        nn.init.trunc_normal_(self.weight, std=(self.weight[0].numel()) ** -0.5)
        nn.init.zeros_(self.bias)

    def patches(self, x: Tensor) -> Tensor:
        """(B, c, H, W) → (B, tokens, c·P²), tokens in reading order."""
        batch, channels, height, width = x.shape
        p = self.patch
        x = x.reshape(batch, channels, height // p, p, width // p, p)
        return x.permute(0, 2, 4, 1, 3, 5).reshape(batch, (height // p) * (width // p), channels * p * p)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.patches(x), self.weight.flatten(1), self.bias)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[1]} → {self.weight.shape[0]}, patch={self.patch}"


class WordEmbed(nn.Module):
    """Word vectors, plus segment vectors when there are any: ids (batch, tokens) → (batch, tokens, channels)."""

    def __init__(self, vocabulary: int, dim: int, segments: int = 0) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, dim)
        self.segments = nn.Embedding(segments, dim) if segments else None

    def forward(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        x: Tensor = self.words(ids)
        if self.segments is None:
            return x
        return x + (self.segments.weight[0] if segments is None else self.segments(segments))


class NormAndDrop(nn.Sequential):
    """What BERT does to the sum of its embeddings: layer norm, then dropout."""

    def __init__(self, dim: int, eps: float, rate: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=eps)
        self.drop = Dropout(rate)


# ---- Positions: the sinusoidal table (Vaswani et al. 2017) and learned ones.


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
