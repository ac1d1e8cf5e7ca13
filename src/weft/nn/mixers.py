"""Token mixers that fit one socket: `mixer(x, mask)` with x (batch, tokens, channels) in and out.

A block is a token mixer and a channel mixer, each in a residual branch. Attention makes it a Transformer, the token MLP
makes it MLP-Mixer, and the others are the controls: how much of the accuracy is due to mixing well, or at all?
Every mixer honours `mask` (batch, tokens), true for real tokens: what stands in the padding, and how much of it there
is, never changes a real token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weft.nn.activations import activation
from weft.nn.attention import Attention
from weft.nn.gates import mask_tokens
from weft.nn.spatial import Layout, mix_tokens


@dataclass(frozen=True)
class Socket:
    """What a mixer may need to know of the network it is put into."""

    layout: Layout
    dim: int
    heads: int = 1
    token_dim: int = 0
    act: str = "gelu"


class IdentityMixer(nn.Module):
    """No mixing at all: tokens meet only in the final pooling."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return x


class RandomMixer(nn.Module):
    """A fixed random matrix with rows that sum to one, never trained (Yu et al. 2022, "MetaFormer baselines")."""

    weight: Tensor

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.softmax(torch.rand(tokens, tokens), dim=-1))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        tokens = x.shape[1]
        weight = self.weight[:tokens, :tokens]
        # (batch, tokens) or (tokens,): what each row's weights on real tokens sum to
        share = weight.sum(-1) if mask is None else mask.to(x.dtype) @ weight.T
        return torch.bmm(weight.expand(x.shape[0], -1, -1), mask_tokens(x, mask)) / share[..., None]


class PoolingMixer(nn.Module):
    """Mean over a window of 3 (or 3×3) tokens, less the token itself (PoolFormer, Yu et al. 2022)."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.grid = layout.grid

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        real = torch.ones_like(x[:1, :, :1]) if mask is None else mask[..., None].to(x.dtype)
        total, count = self._window_sum(mask_tokens(x, mask)), self._window_sum(real)
        return total / count.clamp(min=1) - x

    def _window_sum(self, x: Tensor) -> Tensor:
        if len(self.grid) == 1:
            return F.avg_pool1d(x.transpose(1, 2), 3, 1, padding=1).transpose(1, 2) * 3
        image = x.transpose(1, 2).unflatten(2, self.grid)
        return F.avg_pool2d(image, 3, 1, padding=1).flatten(2).transpose(1, 2) * 9


class DepthwiseMixer(nn.Module):
    """A depth-wise convolution over 7 (or 7×7) tokens: local and shared, one filter for each channel."""

    def __init__(self, layout: Layout, dim: int, kernel: int = 7) -> None:
        super().__init__()
        self.grid = layout.grid
        conv = nn.Conv1d if len(layout.grid) == 1 else nn.Conv2d
        self.conv = conv(dim, dim, kernel, padding=kernel // 2, groups=dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = mask_tokens(x, mask).transpose(1, 2)
        if len(self.grid) == 2:
            x = x.unflatten(2, self.grid)
        return self.conv(x).flatten(2).transpose(1, 2)


class TokenMLP(nn.Module):
    """MLP-Mixer's token mixing: W₂ act(W₁ X) over tokens, the same for all channels (M1)."""

    def __init__(self, tokens: int, hidden: int, act: str = "gelu") -> None:
        super().__init__()
        self.fc1 = nn.Linear(tokens, hidden)
        self.act = activation(act)
        self.fc2 = nn.Linear(hidden, tokens)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        tokens = x.shape[1]
        hidden = self.act(mix_tokens(mask_tokens(x, mask), self.fc1.weight[:, :tokens], self.fc1.bias))
        return mix_tokens(hidden, self.fc2.weight[:tokens], self.fc2.bias[:tokens])


MIXERS: dict[str, Callable[[Socket], nn.Module]] = {
    "identity": lambda socket: IdentityMixer(),
    "random": lambda socket: RandomMixer(socket.layout.tokens),
    "pooling": lambda socket: PoolingMixer(socket.layout),
    "depthwise": lambda socket: DepthwiseMixer(socket.layout, socket.dim),
    "token_mlp": lambda socket: TokenMLP(socket.layout.tokens, socket.token_dim, socket.act),
    "attention": lambda socket: Attention(socket.dim, socket.heads),
}
