"""What a token mixer is: `mixer(x, mask)` with x (batch, tokens, channels) in and out.

A block is a token mixer and a channel mixer, each in a residual branch. Attention makes it a Transformer, the token MLP
makes it MLP-Mixer, and the controls ask how much of the accuracy is due to mixing well, or at all.

Any `nn.Module` class can be a mixer:
- the arguments of its constructor are filled by their names from `MixerContext`: `tokens`, `dim`, `grid`, `layout`,
  `heads`, `token_dim`, `act`, or `context` for all of it; others need a default;
- `forward(x, mask)`: `mask` (batch, tokens) is true for real tokens, and what stands in the padding, and how much of it
  there is, must never change a real token. A mixer whose `forward` takes no mask is for images alone;
- `cost(context)`, a static method, gives parameters and multiply-adds; without one of its own they are counted;
- `reach` is how many tokens in a row (and column) one token sees; without it, all of them.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from torch import nn

from weft.nn.spatial import Layout

GIVEN = ("context", "layout", "grid", "tokens", "dim", "heads", "token_dim", "act")  # what a constructor may ask for


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
