"""The two blocks of all token networks: mixer and channel MLP in residual branches, and gMLP's gated block.

The norm stands before the branch (ViT, Mixer, gMLP) or after the sum (BERT): an argument.
"""

from __future__ import annotations

from torch import Tensor, nn

from weft.nn.activations import activation
from weft.nn.attention import TinyAttention
from weft.nn.gates import SpatialGate
from weft.nn.noise import Dropout, DropPath


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
        self.mixer = mixer
        self.norm2 = nn.LayerNorm(dim, eps=eps)
        self.channels = channels
        self.drop1 = nn.Sequential(Dropout(drop), DropPath(drop_path))
        self.drop2 = nn.Sequential(Dropout(drop), DropPath(drop_path))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if self.norm_first:
            x = x + self.drop1(self.mixer(self.norm1(x), mask))
            return x + self.drop2(self.channels(self.norm2(x)))
        x = self.norm1(x + self.drop1(self.mixer(x, mask)))
        return self.norm2(x + self.drop2(self.channels(x)))


class GatedBlock(nn.Module):
    """gMLP's block: Y = X + s(act(norm(X) U)) V, with the spatial gate s in the middle (M2).

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

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if self.norm_first:
            return x + self.drop(self.branch(self.norm(x), mask))
        return self.norm(x + self.drop(self.branch(x, mask)))

    def branch(self, x: Tensor, mask: Tensor | None) -> Tensor:
        attended = None if self.tiny is None else self.tiny(x, mask)
        return self.fc2(self.gate(self.act(self.fc1(x)), mask, attended))
