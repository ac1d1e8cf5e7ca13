"""The block that ViT, BERT, MLP-Mixer and the controls share: a mixer and a channel MLP, each in a residual branch.

The norm stands before the branch (ViT, Mixer) or after the sum (BERT): an argument. gMLP has a block of its own.
"""

from __future__ import annotations

from torch import Tensor, nn

from weft.nn.activations import activation
from weft.nn.mixers import takes_mask
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
