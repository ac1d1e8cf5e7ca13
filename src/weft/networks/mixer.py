"""MLP-Mixer (Tolstikhin et al. 2021), for images and text.

X = non-overlapping patches of P×P pixels, each embedded by one linear layer: (S tokens, C channels)
U = X + W₂ σ(W₁ LN(X))         over tokens, of hidden width D_S, the same for every channel: `TokenMLP`
Y = U + W₄ σ(W₃ LN(U))         over channels, of hidden width D_C, the same for every token; L times
y = the mean of LN(Y) over tokens, read by a linear head. Biases everywhere; no positions, no class token.

Per block 2·D_S·S·C + 2·D_C·S·C multiply-adds: linear in the number of pixels where D_S is fixed.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from weft.networks.base.backbone import ImageTokens, TextTokens
from weft.networks.config import ImageTokensConfig, TextTokensConfig
from weft.networks.measure.cost import linear, slope
from weft.networks.registry import Sizes, register_mixer
from weft.nn.activations import activation
from weft.nn.blocks import MixerContext, mask_tokens, mix_tokens


@register_mixer("token_mlp")
class TokenMLP(nn.Module):
    """W₂ act(W₁ X) over tokens, the same for all channels: (batch, tokens, channels) in and out.

    A text shorter than the network uses the first columns of W₁ and rows of W₂.
    """

    def __init__(self, tokens: int, token_dim: int, act: str = "gelu") -> None:
        super().__init__()
        self.fc1 = nn.Linear(tokens, token_dim)
        self.act = activation(act)
        self.fc2 = nn.Linear(token_dim, tokens)

    @staticmethod
    def cost(context: MixerContext) -> tuple[int, int]:
        s, d = context.tokens, context.token_dim
        return linear(s, d) + slope(context.act) + linear(d, s), 2 * d * s * context.dim

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        tokens = x.shape[1]
        hidden = self.act(mix_tokens(mask_tokens(x, mask), self.fc1.weight[:, :tokens], self.fc1.bias))
        return mix_tokens(hidden, self.fc2.weight[:tokens], self.fc2.bias[:tokens])


class Mixer(ImageTokens):
    """The token backbone with an MLP over tokens as its mixer."""


class TextMixer(TextTokens):
    """The same on word vectors."""


NANO, PICO = (128, 8, 512, 64, 4, 32), (64, 4, 256, 64, 4, 32)


def mixer(dim: int, depth: int, hidden: int, token: int, patch: int, side: int, **more: Any) -> ImageTokensConfig:
    more = {"family": "mixer", "mixer": "token_mlp", "init": "lecun", **more}
    shape: dict[str, Any] = {"dim": dim, "depth": depth, "hidden_dim": hidden, "token_dim": token}
    return ImageTokensConfig(**shape, patch_size=patch, img_size=(side, side), **more)


def sizes() -> Sizes:
    """Table 1 of the paper, shapes for small images, and small text networks."""
    shapes = {"s": (512, 8, 2048, 256), "b": (768, 12, 3072, 384), "l": (1024, 24, 4096, 512)}
    for size, shape in shapes.items():
        for patch in (32, 16):
            yield f"mixer_{size}{patch}_224", mixer(*shape, patch, 224)
    yield "mixer_h14_224", mixer(1280, 32, 5120, 640, 14, 224)
    yield "mixer_small_p4_32", mixer(256, 8, 1024, 256, 4, 32, num_classes=10)
    yield "mixer_nano_p4_32", mixer(*NANO, num_classes=10)
    yield "mixer_pico_p4_32", mixer(*PICO, num_classes=10)
    for size, (dim, depth) in {"tiny": (128, 2), "small": (256, 4)}.items():
        more: dict[str, Any] = {"dim": dim, "depth": depth, "hidden_dim": 4 * dim, "token_dim": dim // 2}
        yield f"mixer_text_{size}", TextTokensConfig(family="text_mixer", mixer="token_mlp", num_classes=2, **more)
