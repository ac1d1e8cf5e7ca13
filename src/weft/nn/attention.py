"""Self-attention, softmax(QKᵀ/√n)V, with many heads (Vaswani et al. 2017) or one tiny (aMLP), on torch's fused kernel.

The fused kernel never forms the maps. `maps` computes them on request from the same input, and `attention_maps` does so
for every layer of a network during one forward pass, by hooks: the normal path stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from torch import Tensor, nn
from torch.nn import functional as F

if TYPE_CHECKING:
    from weft.nn.blocks import MixerContext


class Attention(nn.Module):
    """Multi-head self-attention: (batch, tokens, channels) → (batch, tokens, outputs).

    `width` is the total width of the heads (default: the channels) and `outputs` that of the result. A `mask` of shape
    (batch, tokens), true for real tokens, keeps every token from attending to padding.
    """

    def __init__(self, dim: int, heads: int, *, width: int | None = None, outputs: int | None = None) -> None:
        super().__init__()
        self.heads, self.width = heads, width or dim
        if self.width % heads:
            raise ValueError(f"attention width {self.width} is not a multiple of {heads} heads")
        self.qkv = nn.Linear(dim, 3 * self.width)
        self.out = nn.Linear(self.width, outputs or dim)

    @staticmethod
    def cost(context: MixerContext) -> tuple[int, int]:
        """Four square matrices; the maps and their use are quadratic in the tokens."""
        s, c = context.tokens, context.dim
        return 4 * (c * c + c), 4 * s * c * c + 2 * s * s * c

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, each (batch, heads, tokens, width/heads)."""
        # Cut along the channels, not by permuting: backward then joins the three gradients with one copy, not two.
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        return q, k, v

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = self.project(x)
        allowed = None if mask is None else mask[:, None, None, :]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        return self.out(y.transpose(1, 2).flatten(2))

    def maps(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """What `forward` attends to for the same arguments: (batch, heads, tokens, tokens); rows sum to one."""
        q, k, _ = self.project(x)
        scores = q @ k.transpose(-2, -1) / (self.width // self.heads) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None, :], float("-inf"))
        return scores.softmax(-1)


class TinyAttention(Attention):
    """aMLP's attention: one head of width 64 or so, from the block's input straight to the width of the gate."""

    def __init__(self, dim: int, width: int, outputs: int) -> None:
        super().__init__(dim, heads=1, width=width, outputs=outputs)


@contextmanager
def attention_maps(network: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the maps of every attention layer below `network` while it runs: {layer name: maps}."""
    found: dict[str, Tensor] = {}

    def catch(name: str, layer: Attention) -> nn.modules.module.RemovableHandle:  # type: ignore[name-defined]
        def hook(_: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Tensor]) -> None:
            found[name] = layer.maps(*args, **kwargs)

        return layer.register_forward_pre_hook(hook, with_kwargs=True)

    handles = [catch(name, layer) for name, layer in network.named_modules() if isinstance(layer, Attention)]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
