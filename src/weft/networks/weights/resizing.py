"""A checkpoint at another image size, patch grid or length: what depends on the tokens, carried over.

Images: fields over the grid are interpolated (bicubic, with antialiasing, as timm does for positions) and class tokens
kept. A weight along a *source* axis, over which a sum is taken, is also scaled by S_old/S_new, so that sums keep their
size. 2-D Toeplitz weights are indexed by offset, not by place: they are carried over as they are, and new offsets
start at zero.

Text: a token keeps its place whatever the maximum length, so everything is carried over as it is and a text that fits
both gives the same result. New weights start at zero, new positions and gate biases as in a fresh network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isqrt, prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weft.errors import WeftError
from weft.networks.base.backbone import TokenNetwork
from weft.networks.config import ImageTokensConfig
from weft.networks.controls import RandomMixer
from weft.networks.gmlp import SpatialGate
from weft.networks.mixer import TokenMLP
from weft.nn.blocks import Layout
from weft.nn.embeddings import LearnedPositions
from weft.nn.spatial import DenseSpatial, Toeplitz2dSpatial, ToeplitzSpatial

Tensors = Mapping[str, Tensor]


def interpolation(old: int, new: int) -> Tensor:
    """The matrix (new, old) of bicubic interpolation along one axis; its rows sum to one.

    It is what torch does to unit vectors. (torch's antialiased interpolation of a whole grid is wrong along the rows
    of a grid with a single column.)
    """
    units = torch.eye(old, dtype=torch.float64)[None, None]
    return F.interpolate(units, (old, new), mode="bicubic", antialias=True)[0, 0].T


@dataclass(frozen=True)
class GridMove:
    """From one grid of patches to another."""

    old: Layout
    new: Layout

    def target(self, x: Tensor, fresh: Tensor | None = None) -> Tensor:
        """(old tokens, …) → (new tokens, …), interpolated."""
        extra, field = x[: self.old.extra], x[self.old.extra :]
        rows, columns = map(interpolation, self.old.grid, self.new.grid)
        image = field.reshape(*self.old.grid, -1).double()
        image = torch.einsum("rh,hwx->rwx", rows, image)
        image = torch.einsum("cw,rwx->rcx", columns, image)
        return torch.cat([extra, image.reshape(-1, *x.shape[1:]).to(x.dtype)])

    def source(self, x: Tensor) -> Tensor:
        """(…, old tokens) → (…, new tokens), interpolated and scaled so that sums over the grid keep their size."""
        moved = self.target(x.movedim(-1, 0))
        moved[self.new.extra :] *= prod(self.old.grid) / prod(self.new.grid)
        return moved.movedim(0, -1)

    def dense(self, x: Tensor) -> Tensor:
        """(target tokens, source tokens), both axes."""
        return self.source(self.target(x))

    def toeplitz(self, x: Tensor) -> Tensor:
        raise WeftError(
            f"a 1-D Toeplitz gate cannot go from {shown(self.old)} to {shown(self.new)} patches: an offset in reading "
            "order mixes rows and columns and means something else on another grid; keep the image size, or use "
            "gate_weight='toeplitz2d'"
        )

    def toeplitz2d(self, x: Tensor) -> Tensor:
        """(2H−1, 2W−1), offset 0 in the middle."""
        rows, columns = (new - old for new, old in zip(self.new.grid, self.old.grid, strict=True))
        return F.pad(x, (columns, columns, rows, rows))  # a negative width crops


@dataclass(frozen=True)
class LengthMove:
    """From one maximum length of text to another."""

    old: Layout
    new: Layout

    @property
    def growth(self) -> int:
        return self.new.tokens - self.old.tokens

    def target(self, x: Tensor, fresh: Tensor | None = None) -> Tensor:
        """(old tokens, …) → (new tokens, …); new tokens are zero, or as in `fresh`."""
        kept = x[: self.new.tokens]
        rest = x.new_zeros(max(self.growth, 0), *x.shape[1:]) if fresh is None else fresh[self.old.tokens :].to(x)
        return torch.cat([kept, rest])

    def source(self, x: Tensor) -> Tensor:
        """(…, old tokens) → (…, new tokens)."""
        return F.pad(x, (0, self.growth))

    def dense(self, x: Tensor) -> Tensor:
        return self.source(self.target(x))

    def toeplitz(self, x: Tensor) -> Tensor:
        """(2S−1,), offset 0 in the middle."""
        return F.pad(x, (self.growth, self.growth))

    def toeplitz2d(self, x: Tensor) -> Tensor:
        raise WeftError("text has no second dimension; use gate_weight='toeplitz'")


Move = GridMove | LengthMove


def move_positions(_: LearnedPositions, move: Move, stored: Tensors, fresh: Tensors) -> dict[str, Tensor]:
    return {"table": move.target(stored["table"], fresh["table"])}


def move_token_mlp(_: TokenMLP, move: Move, stored: Tensors, fresh: Tensors) -> dict[str, Tensor]:
    return {
        "fc1.weight": move.source(stored["fc1.weight"]),
        "fc2.weight": move.target(stored["fc2.weight"]),
        "fc2.bias": move.target(stored["fc2.bias"], fresh["fc2.bias"]),
    }


def move_gate(gate: SpatialGate, move: Move, stored: Tensors, fresh: Tensors) -> dict[str, Tensor]:
    forms: dict[type[nn.Module], Callable[[Tensor], Tensor]] = {
        DenseSpatial: move.dense,
        ToeplitzSpatial: move.toeplitz,
        Toeplitz2dSpatial: move.toeplitz2d,
    }
    return {
        "spatial.weight": forms[type(gate.spatial)](stored["spatial.weight"]),
        "bias": move.target(stored["bias"], fresh["bias"]),
    }


def refuse_random(_: RandomMixer, move: Move, stored: Tensors, fresh: Tensors) -> dict[str, Tensor]:
    raise WeftError("a fixed random mixing matrix fits one number of tokens only; keep the size it was made for")


MOVES: dict[type[nn.Module], Callable[[Any, Move, Tensors, Tensors], dict[str, Tensor]]] = {
    LearnedPositions: move_positions,
    TokenMLP: move_token_mlp,
    SpatialGate: move_gate,
    RandomMixer: refuse_random,
}


def resized(network: TokenNetwork, stored: Tensors, old: Layout) -> dict[str, Tensor]:
    """The tensors of a checkpoint whose tokens lay as `old`, for `network`; the same bits if nothing differs."""
    if old == network.layout:
        return dict(stored)
    move = (GridMove if len(old.grid) == 2 else LengthMove)(old, network.layout)
    fresh, moved = network.state_dict(), dict(stored)
    for name, module in network.named_modules():
        if type(module) in MOVES:
            change = MOVES[type(module)](module, move, below(stored, name), below(fresh, name))
            moved |= {f"{name}.{key}": tensor for key, tensor in change.items()}
    return moved


def below(tensors: Tensors, prefix: str) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}


SIZED = {LearnedPositions: "table", TokenMLP: "fc2.bias", SpatialGate: "bias", RandomMixer: "weight"}


def stored_tokens(network: TokenNetwork, stored: Tensors) -> int | None:
    """How many tokens the checkpoint was made for, or None if no tensor depends on it."""
    for name, module in network.named_modules():
        if type(module) in SIZED:
            return stored[f"{name}.{SIZED[type(module)]}"].shape[0]
    return None


def stored_layout(
    network: TokenNetwork, stored: Tensors, known: dict[str, Any], grid: tuple[int, int] | None = None
) -> Layout:
    """How the checkpoint's tokens lay: by `grid`, by its own configuration, or by count where that is all there is.

    Whether there is a class token is never guessed: the network's configuration says so, and a checkpoint that
    differs in it has a tensor too many or too few.
    """
    tokens, new = stored_tokens(network, stored), network.layout
    if tokens is None:
        return new
    if len(new.grid) == 1:
        return Layout((tokens,))
    patches = tokens - new.extra
    old = Layout(grid or known_grid(network, known) or likely_grid(patches, new), new.extra)
    if old.tokens != tokens:
        raise WeftError(f"the checkpoint has {patches} patches, not {shown(old)}; give grid=(rows, columns) of them")
    return old


def known_grid(network: TokenNetwork, known: dict[str, Any]) -> tuple[int, int] | None:
    """The grid that the checkpoint's own configuration gives."""
    if "img_size" not in known or not isinstance(network.config, ImageTokensConfig):
        return None
    stored: ImageTokensConfig = network.config.replaced(img_size=known["img_size"])
    return stored.grid


def likely_grid(patches: int, new: Layout) -> tuple[int, ...]:
    """For a checkpoint that says nothing of its images: the network's grid if the count agrees, else a square."""
    side = isqrt(max(patches, 0))
    if patches == prod(new.grid):
        return new.grid
    if side * side != patches or not side:
        raise WeftError(f"the checkpoint's {patches} patches form no square; give grid=(rows, columns) of its images")
    return side, side


def shown(layout: Layout) -> str:
    return "×".join(str(side) for side in layout.grid)
