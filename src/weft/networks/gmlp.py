"""gMLP (Liu et al. 2021), tMLP and aMLP, for images and text.

Z = σ(LN(X) U)                 to the expanded width E
s(Z) = Z₁ ⊙ (W LN(Z₂) + b)     over tokens: the spatial gate, here split; `SpatialGate` has its other forms
Y = s(Z) V + X                 L times; mean over tokens, linear head; no positions.

tMLP: W is a Toeplitz matrix (`gate_weight="toeplitz"`, or "toeplitz2d" over rows and columns of an image).
aMLP: a one-head attention of width 64 on LN(X) is added inside the gate (`tiny_attention=64`).

Per block, multiply-adds: split 1.5·E·S·C + E·S²/2, unsplit 2·E·S·C + E·S².
"""

from __future__ import annotations

from math import prod
from typing import Any, Literal

import torch
from torch import Tensor, nn

from weft.networks.base.backbone import ImageTokens, TextTokens
from weft.networks.config import ImageTokensConfig, TextTokensConfig, TokenConfig
from weft.networks.measure.cost import linear, slope
from weft.networks.registry import Sizes
from weft.nn.activations import activation
from weft.nn.attention import TinyAttention
from weft.nn.blocks import Layout, mask_tokens, mix_tokens
from weft.nn.noise import Dropout, DropPath
from weft.nn.spatial import SPATIAL

Form = Literal["linear", "additive", "multiplicative", "split"]

GATE_EPS = 1e-5  # of the norm in the gate, whatever the blocks use: timm's, whose gMLP weights are the public ones
NEAR_ZERO = 1e-6  # deviation of W at the start, so that a block begins as a plain channel MLP (Liu et al. 2021, §2.1)


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


class GatedBlock(nn.Module):
    """gMLP's block: Y = X + s(act(norm(X) U)) V, with the spatial gate s in the middle.

    `tiny` is the aMLP attention, from norm(X) to the width of the gate, or None.
    """

    def __init__(
        self,
        dim: int,
        hidden: int,
        gate: SpatialGate,
        *,
        tiny: TinyAttention | None = None,
        norm_first: bool = True,
        act: str = "gelu",
        eps: float = 1e-6,
        drop: float = 0.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.norm = nn.LayerNorm(dim, eps=eps)
        self.fc1 = nn.Linear(dim, hidden)
        self.act = activation(act)
        self.gate = gate
        self.tiny = tiny
        self.fc2 = nn.Linear(gate.outputs, dim)
        self.drop = nn.Sequential(Dropout(drop), DropPath(drop_path))

    def branch(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """What the shortcut goes around, behind its norm where the norm comes first."""
        x = self.norm(x) if self.norm_first else x
        attended = None if self.tiny is None else self.tiny(x, mask)
        return self.fc2(self.gate(self.act(self.fc1(x)), mask, attended))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        y = x + self.drop(self.branch(x, mask))
        return y if self.norm_first else self.norm(y)


def gated_block(config: TokenConfig, layout: Layout, drop_path: float) -> GatedBlock:
    """The block of a configuration; Toeplitz makes it tMLP's, tiny attention aMLP's."""
    gate = SpatialGate(config.hidden_dim, layout, form=config.gate, weight=config.gate_weight)
    tiny = TinyAttention(config.dim, config.tiny_attention, gate.outputs) if config.tiny_attention else None
    return GatedBlock(
        config.dim,
        config.hidden_dim,
        gate,
        tiny=tiny,
        norm_first=config.norm_first,
        act=config.act,
        eps=config.norm_eps,
        drop=config.drop_rate,
        drop_path=drop_path,
    )


def gated_cost(config: TokenConfig, layout: Layout) -> tuple[int, int]:
    """Norm, expansion to E, gate (norm, W, b) of width G, contraction; aMLP adds its attention of width a."""
    s, c, e, a = layout.tokens, config.dim, config.hidden_dim, config.tiny_attention
    g = e // 2 if config.gate == "split" else e
    w = {"dense": s * s, "toeplitz": 2 * s - 1, "toeplitz2d": prod(2 * side - 1 for side in layout.grid)}
    parameters = 2 * c + linear(c, e) + slope(config.act) + 2 * g + w[config.gate_weight] + s + linear(g, c)
    macs = s * c * e + s * s * g + s * g * c
    if a:
        parameters += linear(c, 3 * a) + linear(a, g)
        macs += 3 * a * s * c + 2 * s * s * a + s * a * g
    return parameters, macs


class GMLP(ImageTokens):
    """The token backbone with gated blocks, on patches."""


class TextGMLP(TextTokens):
    """The token backbone with gated blocks, on word vectors."""


VARIANTS: dict[str, dict[str, Any]] = {  # what tells gMLP, tMLP (1-D and 2-D) and aMLP apart
    "gmlp": {},
    "tmlp": {"gate_weight": "toeplitz"},
    "tmlp2d": {"gate_weight": "toeplitz2d"},
    "amlp": {"tiny_attention": 64},
}


def gmlp(dim: int, hidden: int, depth: int, patch: int, side: int, **more: Any) -> ImageTokensConfig:
    shape: dict[str, Any] = {"dim": dim, "depth": depth, "hidden_dim": hidden, "patch_size": patch}
    classes = 1000 if side == 224 else 10
    return ImageTokensConfig(family="gmlp", block="gated", img_size=(side, side), num_classes=classes, **shape, **more)


def text_gmlp(dim: int, depth: int, hidden: int, **more: Any) -> TextTokensConfig:
    shape: dict[str, Any] = {"dim": dim, "depth": depth, "hidden_dim": hidden}
    return TextTokensConfig(family="text_gmlp", block="gated", num_classes=2, **shape, **more)


def sizes() -> Sizes:
    """Table 1 of the paper and shapes for small images; for text table 7's depths, the base sizes and small shapes.

    The published counts for text are met with a Toeplitz W, 32,000 words and no positions, so that is what those are.
    """
    shapes = {
        "ti16_224": (128, 768, 30, 16, 224),
        "s16_224": (256, 1536, 30, 16, 224),
        "b16_224": (512, 3072, 30, 16, 224),
        "nano_p4_32": (128, 768, 12, 4, 32),
        "pico_p4_32": (64, 256, 6, 4, 32),
        "ti_p4_32": (128, 768, 30, 4, 32),
        "mini_p4_32": (192, 768, 18, 4, 32),
        "small_p4_32": (256, 1024, 12, 4, 32),
    }
    for kind, change in VARIANTS.items():
        for size, shape in shapes.items():
            yield f"{kind}_{size}", gmlp(*shape, **change)
    published: dict[str, Any] = {"vocab_size": 32000, "gate_weight": "toeplitz"}
    for depth in (18, 36, 72, 144):
        yield f"gmlp_text_l{depth}", text_gmlp(512, depth, 3072, **published)
    yield "gmlp_text_base", text_gmlp(512, 48, 3072, max_length=512, **published)
    yield "amlp_text_base", text_gmlp(512, 36, 3072, max_length=512, tiny_attention=64, **published)
    for size, (dim, depth) in {"tiny": (128, 4), "small": (256, 8)}.items():
        for kind in ("gmlp", "tmlp", "amlp"):
            yield f"{kind}_text_{size}", text_gmlp(dim, depth, 4 * dim, **VARIANTS[kind])
