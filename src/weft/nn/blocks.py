"""The block that ViT, BERT, MLP-Mixer and the controls share, and what a token mixer is that is put into it.

A block is a token mixer and a channel MLP, each in a residual branch. Attention makes it a Transformer, the token MLP
of `networks/mixer.py` makes it MLP-Mixer, and the controls ask how much of the accuracy is due to mixing well, or at
all. The norm stands before the branch (ViT, Mixer) or after the sum (BERT): an argument. gMLP has a block of its own.

Any `nn.Module` class can be a mixer: `mixer(x, mask)` with x (batch, tokens, channels) in and out.
- The arguments of its constructor are filled by their names from `MixerContext`: `tokens`, `dim`, `grid`, `layout`,
  `heads`, `token_dim`, `act`, or `context` for all of it; others need a default.
- `forward(x, mask)`: `mask` (batch, tokens) is true for real tokens, and what stands in the padding, and how much of it
  there is, must never change a real token. A mixer whose `forward` takes no mask is for images alone.
- `cost(context)`, a static method, gives parameters and multiply-adds; without one of its own they are counted.
- `reach` is how many tokens in a row (and column) one token sees; without it, all of them.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from weft.nn.activations import activation
from weft.nn.noise import Dropout, DropPath

GIVEN = ("context", "layout", "grid", "tokens", "dim", "heads", "token_dim", "act")  # what a constructor may ask for


class ChannelMLP(nn.Module):
    """W₂ act(W₁ x) over channels, for each token alone: (batch, tokens, channels) in and out."""

    def __init__(self, dim: int, hidden: int, act: str = "gelu") -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.act = activation(act)
        self.fc2 = nn.Linear(hidden, dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.act(self.fc1(x)))


class Block(nn.Module):
    """U = X + mixer(norm(X)), Y = U + channels(norm(U)); or, with `norm_first=False`, norm(X + mixer(X)) and so on."""

    def __init__(
        self,
        dim: int,
        mixer: nn.Module,
        channels: nn.Module,
        *,
        norm_first: bool = True,
        eps: float = 1e-6,
        drop: float = 0.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.norm1 = nn.LayerNorm(dim, eps=eps)
        self.mixer, self.masked = mixer, takes_mask(type(mixer))
        self.norm2 = nn.LayerNorm(dim, eps=eps)
        self.channels = channels
        self.drop1 = nn.Sequential(Dropout(drop), DropPath(drop_path))
        self.drop2 = nn.Sequential(Dropout(drop), DropPath(drop_path))

    def token_branch(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """What the first shortcut goes around: the mixer, behind its norm where the norm comes first."""
        x = self.norm1(x) if self.norm_first else x
        return self.mixer(x, mask) if self.masked else self.mixer(x)

    def channel_branch(self, x: Tensor) -> Tensor:
        """What the second shortcut goes around: the channel MLP, behind its norm where the norm comes first."""
        return self.channels(self.norm2(x) if self.norm_first else x)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if self.norm_first:
            x = x + self.drop1(self.token_branch(x, mask))
            return x + self.drop2(self.channel_branch(x))
        x = self.norm1(x + self.drop1(self.token_branch(x, mask)))
        return self.norm2(x + self.drop2(self.channel_branch(x)))


# ---- Tokens: how they lie, and how a matrix mixes them.


@dataclass(frozen=True)
class Layout:
    """How tokens lie: `grid` is (rows, columns) for images and (length,) for text; `extra` class tokens stand first."""

    grid: tuple[int, ...]
    extra: int = 0

    @property
    def tokens(self) -> int:
        return prod(self.grid) + self.extra


def mix_tokens(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """W·X + b over tokens: (batch, tokens, channels) → (batch, rows of W, channels).

    One batched product with W expanded over the batch. A linear layer over transposed tokens, or `W @ x`, which torch
    turns into one, costs two copies; this costs none and was 1.3 to 2 times as fast, forward and backward.
    """
    return torch.baddbmm(bias[:, None], weight.expand(x.shape[0], -1, -1), x)


def mask_tokens(x: Tensor, mask: Tensor | None) -> Tensor:
    """Zero the padding of (batch, tokens, channels); `mask` (batch, tokens) is true for real tokens."""
    return x if mask is None else x * mask[..., None].to(x.dtype)


# ---- Mixers: what they are told, and how they are made.


@dataclass(frozen=True)
class MixerContext:
    """What a mixer may need to know of the network it is put into."""

    layout: Layout
    dim: int
    heads: int = 1
    token_dim: int = 0
    act: str = "gelu"

    @property
    def context(self) -> MixerContext:
        return self

    @property
    def tokens(self) -> int:
        return self.layout.tokens

    @property
    def grid(self) -> tuple[int, ...]:
        return self.layout.grid


def make_mixer(kind: type[nn.Module], context: MixerContext) -> nn.Module:
    """A mixer of some kind, made for a network."""
    wanted = inspect.signature(kind).parameters
    return kind(**{name: getattr(context, name) for name in GIVEN if name in wanted})


def unfilled(kind: type[nn.Module]) -> list[str]:
    """Arguments of a constructor that nothing fills."""
    single = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        name
        for name, argument in inspect.signature(kind).parameters.items()
        if name not in GIVEN and argument.default is argument.empty and argument.kind not in single
    ]


def takes_mask(kind: type[Any]) -> bool:
    """Whether `forward` can be told which tokens are real."""
    arguments = inspect.signature(kind.forward).parameters
    return "mask" in arguments or any(argument.kind is argument.VAR_POSITIONAL for argument in arguments.values())
