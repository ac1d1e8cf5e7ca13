"""Controls: the Mixer's backbone with a mixer that learns nothing, or only locally (Yu et al. 2022).

identity    X                  tokens meet only in the final pooling
random      R·X                R fixed, its rows positive with sum one (Yu et al. 2022, "MetaFormer baselines")
pooling     mean₃ₓ₃(X) − X     PoolFormer's
depthwise   k_c ∗ X_c          a 7×7 filter for each channel: local and shared, the only one of these that learns

They say how much of an accuracy is due to mixing well, or at all. They have learned positions, since no other part of
them can tell places apart.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weft.networks.base.backbone import ImageTokens, TextTokens
from weft.networks.config import TextTokensConfig
from weft.networks.mixer import NANO, PICO, mixer
from weft.networks.registry import Sizes, register_mixer
from weft.nn.blocks import Layout, MixerContext, mask_tokens


@register_mixer("identity")
class IdentityMixer(nn.Module):
    """No mixing at all: tokens meet only in the final pooling."""

    reach = 1

    @staticmethod
    def cost(context: MixerContext) -> tuple[int, int]:
        return 0, 0

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return x


@register_mixer("random")
class RandomMixer(nn.Module):
    """A fixed random matrix with rows that sum to one, never trained."""

    weight: Tensor

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.softmax(torch.rand(tokens, tokens), dim=-1))

    @staticmethod
    def cost(context: MixerContext) -> tuple[int, int]:
        return 0, context.tokens**2 * context.dim

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        tokens = x.shape[1]
        weight = self.weight[:tokens, :tokens]
        # (batch, tokens) or (tokens,): what each row's weights on real tokens sum to
        share = weight.sum(-1) if mask is None else mask.to(x.dtype) @ weight.T
        return torch.bmm(weight.expand(x.shape[0], -1, -1), mask_tokens(x, mask)) / share[..., None]


@register_mixer("pooling")
class PoolingMixer(nn.Module):
    """Mean over a window of 3 (or 3×3) tokens, less the token itself."""

    reach = 3

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.grid = layout.grid

    @staticmethod
    def cost(context: MixerContext) -> tuple[int, int]:
        return 0, 0  # additions alone

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        real = torch.ones_like(x[:1, :, :1]) if mask is None else mask[..., None].to(x.dtype)
        total, count = self._window_sum(mask_tokens(x, mask)), self._window_sum(real)
        return total / count.clamp(min=1) - x

    def _window_sum(self, x: Tensor) -> Tensor:
        k = self.reach
        if len(self.grid) == 1:
            return F.avg_pool1d(x.transpose(1, 2), k, 1, padding=k // 2).transpose(1, 2) * k
        image = x.transpose(1, 2).unflatten(2, self.grid)
        return F.avg_pool2d(image, k, 1, padding=k // 2).flatten(2).transpose(1, 2) * k**2


@register_mixer("depthwise")
class DepthwiseMixer(nn.Module):
    """A depth-wise convolution over 7 (or 7×7) tokens: local and shared, one filter for each channel."""

    reach = 7

    def __init__(self, layout: Layout, dim: int) -> None:
        super().__init__()
        self.grid = layout.grid
        conv = nn.Conv1d if len(layout.grid) == 1 else nn.Conv2d
        self.conv = conv(dim, dim, self.reach, padding=self.reach // 2, groups=dim)

    @classmethod
    def cost(cls, context: MixerContext) -> tuple[int, int]:
        window = cls.reach ** len(context.grid)
        return context.dim * (window + 1), context.tokens * context.dim * window

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = mask_tokens(x, mask).transpose(1, 2)
        if len(self.grid) == 2:
            x = x.unflatten(2, self.grid)
        return self.conv(x).flatten(2).transpose(1, 2)


class Control(ImageTokens):
    """The token backbone with one of these mixers, on patches."""


class TextControl(TextTokens):
    """The same for text."""


CONTROLS = ("identity", "random", "pooling", "depthwise")


def sizes() -> Sizes:
    """The shapes of the small Mixers that they stand beside."""
    for name in CONTROLS:
        more: dict[str, Any] = {"family": "control", "mixer": name, "positions": "learned", "num_classes": 10}
        yield f"control_{name}_p4_32", mixer(*NANO, **more)
        yield f"control_{name}_pico_p4_32", mixer(*PICO, **more)
    for size, (dim, depth) in {"tiny": (128, 2), "small": (256, 4)}.items():
        for name in CONTROLS:
            more = {"dim": dim, "depth": depth, "hidden_dim": 4 * dim, "positions": "learned", "num_classes": 2}
            yield f"control_{name}_text_{size}", TextTokensConfig(family="text_control", mixer=name, **more)
