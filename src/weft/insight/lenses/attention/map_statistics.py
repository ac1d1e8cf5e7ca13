"""What attention's maps say in numbers: how far a head looks, how evenly, how much it depends on the input.

Maps are (batch, heads, tokens, tokens): row i holds what token i attends to, and sums to one.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from weft.insight.toeplitz import Grid, distances
from weft.nn.blocks import Layout


def rollout(layers: Iterable[Tensor]) -> Tensor:
    """How much of each input token reaches each output token through all layers: (batch, tokens, tokens).

    Abnar & Zuidema 2020: half of a block's output is taken to be its input, handed on by the residual branch, and half
    the mean of the heads; the blocks' matrices are multiplied. Rows sum to one.
    """
    total = None
    for maps in layers:
        step = (maps.mean(1) + torch.eye(maps.shape[-1])) / 2
        total = step if total is None else step @ total
    if total is None:
        raise ValueError("a rollout needs the maps of at least one layer")
    return total


def read_by_output(flow: Tensor, mask: Tensor | None, pool: str) -> Tensor:
    """What the head reads of each token, (batch, tokens), from what each token reads (batch, tokens, tokens).

    `pool` is the network's: the first real token, or the mean over real ones.
    """
    if mask is None:
        return flow[:, 0] if pool == "token" else flow.mean(1)
    if pool == "token":
        return flow[torch.arange(len(flow)), mask.int().argmax(1)]
    return (flow * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


def mean_distance(maps: Tensor, layout: Layout, mask: Tensor | None = None) -> Tensor:
    """Mean distance in tokens between a token and what it attends to: (batch, heads).

    Class tokens have no place: they ask nothing here, and what is paid to them is left out of the weights.
    """
    inner = maps[..., layout.extra :, layout.extra :]
    tokens = inner.shape[-1]
    apart = distances(layout.grid if len(layout.grid) == 2 else (tokens,)).to(maps.dtype)
    reached = (inner * apart).sum(-1) / inner.sum(-1).clamp(min=1e-12)  # (batch, heads, tokens)
    return over_real(reached, mask)


def entropy(maps: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean entropy of what a token attends to, in bits: (batch, heads). log₂ S where all are equal, 0 for one alone."""
    bits = -torch.special.xlogy(maps, maps).sum(-1) / torch.log(torch.tensor(2.0))
    return over_real(bits, mask)


def over_real(values: Tensor, mask: Tensor | None) -> Tensor:
    """Mean of (batch, heads, tokens) over real tokens: (batch, heads)."""
    if mask is None:
        return values.mean(-1)
    return (values * mask[:, None]).sum(-1) / mask.sum(-1)[:, None]


def even_distance(grid: Grid) -> float:
    """The mean distance of a head that attends to all tokens alike."""
    return float(distances(grid).mean())
