"""Vision Transformer (Dosovitskiy et al. 2020), DeiT's distilled one, and the ResNet–ViT hybrid.

z₀ = [class; x₁E; …; x_NE] + positions      `class_token=True, positions="learned"`
z′ = MSA(LN(z)) + z                         `mixer="attention"`, nn/attention.py
z  = MLP(LN(z′)) + z′          L times
y  = LN(z⁰), the class token, read by a linear head: `pool="token"`.

DeiT (Touvron et al. 2021) is a ViT trained without more data than ImageNet. Distilled, it has a second token beside the
class token, z₀ = [class; distill; x₁E; …], and a second head that reads it: the first head learns the labels, the
second what a teacher says. In use the mean of the two answers.

Per block 4·S·C² + 2·S²·C + 2·D·S·C multiply-adds: quadratic in the number of tokens S.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from weft.networks.base.backbone import ImageTokens
from weft.networks.config import ImageTokensConfig
from weft.networks.registry import Sizes, register_mixer
from weft.networks.resnet import ResNetTrunk
from weft.nn.attention import Attention
from weft.nn.embeddings import PatchEmbed

register_mixer("attention")(Attention)


class ViT(ImageTokens):
    """The token backbone with attention as its mixer, a class token and learned positions."""


class DistilledViT(ImageTokens):
    """A ViT with a distillation token and a head that reads it."""

    apart = False
    """Whether it answers with both heads, (batch, 2, classes), while it is trained: a teacher's lessons need that."""

    def __init__(self, config: ImageTokensConfig) -> None:
        super().__init__(config)
        self.distill_token = nn.Parameter(torch.empty(config.dim))
        nn.init.trunc_normal_(self.distill_token, std=0.02)
        self.head_dist = self.fresh_head()

    def leading_tokens(self) -> list[Tensor]:
        return [self.class_token, self.distill_token]

    def forward_heads(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """The answers (batch, classes) of the head that learns labels and of the one that learns from a teacher."""
        tokens = self.head_drop(features[:, :2])
        return self.head(tokens[:, 0]), self.head_dist(tokens[:, 1])

    def forward_head(self, features: Tensor, *, pre_logits: bool = False) -> Tensor:
        first, second = features[:, :2].unbind(1) if pre_logits else self.forward_heads(features)
        if self.apart and self.training and not pre_logits:
            return torch.stack([first, second], 1)
        return (first + second) / 2

    def reset_classifier(self, num_classes: int) -> None:
        super().reset_classifier(num_classes)
        weight = next(self.parameters())
        self.head_dist = self.fresh_head().to(weight.device, weight.dtype)


class Hybrid(ImageTokens):
    """A ViT whose tokens are the pixels of a ResNet's last feature map instead of patches of the image."""

    def make_stem(self) -> tuple[nn.Module, PatchEmbed]:
        config = self.config
        trunk = ResNetTrunk(config.in_chans, config.stem_layers, config.stem_widths, stem=config.stem)
        return trunk, PatchEmbed(config.stem_widths[len(config.stem_layers) - 1], config.dim, 1)


def vit(dim: int, depth: int, heads: int, patch: int, side: int, **more: Any) -> ImageTokensConfig:
    more = {"family": "vit", "hidden_dim": 4 * dim, **more}
    shape: dict[str, Any] = {"dim": dim, "depth": depth, "heads": heads, "patch_size": patch, "img_size": (side, side)}
    return ImageTokensConfig(**shape, class_token=True, pool="token", positions="learned", **more)


def sizes() -> Sizes:
    """Table 1 of the paper, with Touvron et al. 2021's Ti and S, and shapes for small images."""
    shapes = {"tiny": (192, 12, 3), "small": (384, 12, 6), "base": (768, 12, 12), "large": (1024, 24, 16)}
    for size, shape in shapes.items():
        for patch in (16,) if size == "tiny" else (16, 32):
            yield f"vit_{size}_patch{patch}_224", vit(*shape, patch, 224)
    yield "vit_huge_patch14_224", vit(1280, 32, 16, 14, 224)
    yield "vit_base_patch16_384", vit(*shapes["base"], 16, 384)
    for size in ("tiny", "small", "base"):
        yield f"deit_{size}_patch16_224", vit(*shapes[size], 16, 224)
        yield f"deit_{size}_distilled_patch16_224", vit(*shapes[size], 16, 224, family="deit")
    yield "vit_nano_p4_32", vit(192, 9, 3, 4, 32, hidden_dim=384, num_classes=10)
    yield "vit_pico_p4_32", vit(64, 5, 2, 4, 32, hidden_dim=192, num_classes=10)
    yield "deit_pico_distilled_p4_32", vit(64, 5, 2, 4, 32, hidden_dim=192, num_classes=10, family="deit")
    yield "vit_small_resnet18_224", vit(*shapes["small"], 16, 224, family="hybrid", stem_layers=(2, 2, 2))
    stem: dict[str, Any] = {"stem": "cifar", "stem_layers": (3, 3, 3), "stem_widths": (16, 32, 64)}
    yield "vit_nano_resnet20_32", vit(128, 4, 2, 4, 32, family="hybrid", num_classes=10, **stem)
