"""The spatial gating unit of gMLP in its four forms (M3), over any matrix of `spatial.py` (M5), with or without a
tiny attention added inside the gate (M6)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from weft.nn.spatial import SPATIAL, Layout, mix_tokens

Form = Literal["linear", "additive", "multiplicative", "split"]

GATE_EPS = 1e-5  # of the norm in the gate, whatever the blocks use: timm's, whose gMLP weights are the public ones
NEAR_ZERO = 1e-6  # deviation of W at the start, so that a block begins as a plain channel MLP (Liu et al. 2021, §2.1)


def mask_tokens(x: Tensor, mask: Tensor | None) -> Tensor:
    """Zero the padding of (batch, tokens, channels); `mask` (batch, tokens) is true for real tokens."""
    return x if mask is None else x * mask[..., None].to(x.dtype)


class SpatialGate(nn.Module):
    """s(Z) over tokens: (batch, tokens, width) → the same, or half the width when split.

    f(Z) = W·norm(Z) + b, plus the tiny attention when given, and then
    linear f(Z) · additive Z + f(Z) · multiplicative Z ⊙ f(Z) · split Z₁ ⊙ f(Z₂).
    """

    def __init__(
        self, width: int, layout: Layout, *, form: Form = "split", weight: str = "dense", eps: float = GATE_EPS
    ) -> None:
        super().__init__()
        self.form = form
        self.outputs = width // 2 if form == "split" else width
        self.norm = nn.LayerNorm(self.outputs, eps=eps)
        self.spatial = SPATIAL[weight](layout)
        self.bias = nn.Parameter(torch.empty(layout.tokens))
        self.initialise()

    def initialise(self) -> None:
        """W ≈ 0 and b = 1 where the gate multiplies, b = 0 where it adds; ordinary weights where it is all there is."""
        if self.form == "linear":
            nn.init.normal_(self.spatial.weight, std=self.bias.numel() ** -0.5)
        else:
            nn.init.normal_(self.spatial.weight, std=NEAR_ZERO)
        nn.init.constant_(self.bias, float(self.form in ("multiplicative", "split")))

    def forward(self, z: Tensor, mask: Tensor | None = None, attended: Tensor | None = None) -> Tensor:
        kept, moved = z.chunk(2, dim=-1) if self.form == "split" else (z, z)
        tokens = z.shape[1]
        moved = mask_tokens(self.norm(moved), mask)
        mixed = mix_tokens(moved, self.spatial.matrix(tokens), self.bias[:tokens])
        if attended is not None:
            mixed = mixed + attended
        if self.form == "linear":
            return mixed
        return kept + mixed if self.form == "additive" else kept * mixed

    def extra_repr(self) -> str:
        return f"form={self.form}"
