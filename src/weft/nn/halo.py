"""Blocked local self-attention with a halo (Vaswani et al. 2021, "Scaling local self-attention").

The image is cut into blocks of b×b pixels. The pixels of a block attend to their block and to a halo of h pixels around
it, a window of w×w with w = b + 2h: one product a block, where a window for each pixel would copy the image many times.

logit(p, q) = q_p·k_q / √d + q_p·r(row of q − row of p) + q_p·c(column of q − column of p)

r and c are learned vectors for each offset (Shaw et al. 2018). Around the image stand zeros, which take part as keys.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class HaloAttention(nn.Module):
    """(batch, channels, height, width) in and out; sides are multiples of `block`. Stride 2 asks every second pixel."""

    def __init__(self, dim: int, heads: int, block: int, halo: int, stride: int = 1) -> None:
        super().__init__()
        if dim % heads or block % stride:
            raise ValueError(f"{dim} channels for {heads} heads, blocks of {block} with stride {stride}: not whole")
        self.heads, self.block, self.halo, self.asking = heads, block, halo, block // stride
        self.window = block + 2 * halo
        self.q = nn.Conv2d(dim, dim, 1, stride=stride, bias=False)
        self.kv = nn.Conv2d(dim, 2 * dim, 1, bias=False)
        self.height_rel = nn.Parameter(torch.empty(2 * self.window - 1, dim // heads))
        self.width_rel = nn.Parameter(torch.empty(2 * self.window - 1, dim // heads))
        self.initialise()

    def initialise(self) -> None:
        """Offsets start with the deviation 1/√d that makes their logits as large as those of the keys."""
        for table in (self.height_rel, self.width_rel):
            nn.init.trunc_normal_(table, std=table.shape[1] ** -0.5)

    @staticmethod
    def cost(dim: int, heads: int, block: int, halo: int, pixels: int, stride: int = 1) -> tuple[int, int]:
        """Parameters and multiply-adds: linear in the pixels, each of which sees w² keys and 2w offsets."""
        window, asking = block + 2 * halo, pixels // stride**2
        parameters = 3 * dim**2 + 2 * (2 * window - 1) * (dim // heads)
        return parameters, dim**2 * (asking + 2 * pixels) + 2 * asking * dim * (window**2 + window)

    def forward(self, x: Tensor) -> Tensor:
        rows, columns = x.shape[2] // self.block, x.shape[3] // self.block
        q = self._queries(self.q(x), rows, columns)
        k, v = self._windows(self.kv(x)).chunk(2, dim=-1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self._offsets(q))
        y = y.unflatten(2, (self.asking, self.asking)).unflatten(0, (x.shape[0], rows, columns))
        return y.permute(0, 3, 6, 1, 4, 2, 5).flatten(5, 6).flatten(3, 4).flatten(1, 2)

    def _queries(self, q: Tensor, rows: int, columns: int) -> Tensor:
        """(batch · blocks, heads, pixels of a block, channels of a head)."""
        q = q.unflatten(3, (columns, self.asking)).unflatten(2, (rows, self.asking)).unflatten(1, (self.heads, -1))
        return q.permute(0, 3, 5, 1, 4, 6, 2).flatten(0, 2).flatten(2, 3)

    def _windows(self, kv: Tensor) -> Tensor:
        """(batch · blocks, heads, pixels of a window, channels of keys and values of a head)."""
        kv = F.pad(kv, [self.halo] * 4).unfold(2, self.window, self.block).unfold(3, self.window, self.block)
        return kv.unflatten(1, (self.heads, -1)).permute(0, 3, 4, 1, 5, 6, 2).flatten(0, 2).flatten(2, 3)

    def _offsets(self, q: Tensor) -> Tensor:
        """The logits of the offsets: (batch · blocks, heads, pixels of a block, pixels of a window)."""
        q = q.unflatten(2, (self.asking, self.asking))
        rows = torch.einsum("nhyxd,ydj->nhyxj", q, self._by_offset(self.height_rel))
        columns = torch.einsum("nhyxd,xdk->nhyxk", q, self._by_offset(self.width_rel))
        return (rows[..., :, None] + columns[..., None, :]).flatten(4, 5).flatten(2, 3)

    def _by_offset(self, table: Tensor) -> Tensor:
        """(places in a block, channels, places in a window), of a table of offsets: place j − i + w − 1 for i and j."""
        return table.unfold(0, self.window, 1)[self.window - self.asking : self.window].flip(0)
