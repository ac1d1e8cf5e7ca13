"""Noise without state: dropout and drop path whose draws depend on (seed, step, layer, example) and on nothing else.

Order and augmentation draw from `data/batch/noise.py` in the same manner.

Inside `example_noise(seed, step, index)` every layer derives its draws from the *global* index of each example in the
data set, by an integer hash. The order of layers, the number of ranks and the size of the local batch change nothing,
so two processes drop what one process would have dropped, and a resumed run drops what the first one did. Outside of
it the layers use torch's generator, as users of plain PyTorch expect.

The keys belong to the thread, so that several networks can be trained at once. Autograd runs the backward pass of the
CPU in the thread that asks for it; that of a GPU runs in a thread of autograd's own, where recomputed layers
(`torch.utils.checkpoint`) would not find the keys. weft recomputes nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# lowbias32 (Wellons 2018), an integer hash with near-ideal avalanche; constants as signed 32-bit numbers.
FIRST, SECOND = 0x7FEB352D, 0x846CA68B - 2**32
GOLDEN = 0x9E3779B9 - 2**32
LARGEST = 2**31 - 1


class _Keys(threading.local):
    """The keys of the examples of this thread's current batch; none outside of `example_noise`."""

    def __init__(self) -> None:
        self.stack: list[Tensor] = []


_keys = _Keys()


def scramble(x: Tensor) -> Tensor:
    """Hash of every element of the int32 tensor `x`, in place."""
    x.bitwise_xor_((x >> 16).bitwise_and_(0xFFFF)).mul_(FIRST)
    x.bitwise_xor_((x >> 15).bitwise_and_(0x1FFFF)).mul_(SECOND)
    return x.bitwise_xor_((x >> 16).bitwise_and_(0xFFFF))


def _wrap(number: int) -> int:
    """`number` modulo 2³², as a signed 32-bit number."""
    return (number + 2**31) % 2**32 - 2**31


@contextmanager
def example_noise(seed: int, step: int, index: Tensor) -> Iterator[None]:
    """Key all noise by `seed`, `step` and `index`, the (batch,) global indices of the examples."""
    keys = scramble(index.to(torch.int32) + _wrap(seed * 0x632BE5AB + 1))
    _keys.stack.append(scramble(keys + _wrap(step * 0x85157AF5 + 1)))
    try:
        yield
    finally:
        _keys.stack.pop()


def keep(shape: torch.Size | tuple[int, ...], rate: float, stream: int, device: torch.device) -> Tensor:
    """Boolean tensor of `shape` (batch first), false with probability `rate`."""
    if not _keys.stack:
        return torch.rand(shape, device=device) >= rate
    keys = scramble(_keys.stack[-1].to(device) ^ _wrap((stream + 1) * 0x58F38DED))
    count = int(torch.Size(shape[1:]).numel())
    counter = torch.arange(count, dtype=torch.int32, device=device).mul_(GOLDEN)
    draws = scramble(keys[:, None] + counter).bitwise_and_(LARGEST)
    return (draws >= int(rate * LARGEST)).view(shape)


class Noisy(nn.Module):
    """A layer that draws noise while training. `stream` tells it from its siblings; `number_streams` sets it."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.stream = 0

    def extra_repr(self) -> str:
        return f"rate={self.rate:.3g}"


class Dropout(Noisy):
    """Zeroes elements with probability `rate` and scales the others by 1/(1−rate)."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        if not _keys.stack:
            return F.dropout(x, self.rate)
        return x * keep(x.shape, self.rate, self.stream, x.device) / (1 - self.rate)


class DropPath(Noisy):
    """Stochastic depth: drops the whole branch of an example with probability `rate` (Huang et al. 2016)."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        kept = keep((x.shape[0], 1), self.rate, self.stream, x.device) / (1 - self.rate)
        return x * kept.view(-1, *[1] * (x.ndim - 1)).to(x.dtype)


def number_streams(module: nn.Module) -> None:
    """Give each noisy layer below `module` a number of its own, in the order of registration."""
    layers = (layer for layer in module.modules() if isinstance(layer, Noisy))
    for number, layer in enumerate(layers):
        layer.stream = number


def rising_rates(rate: float, depth: int) -> list[float]:
    """Drop-path rates of `depth` blocks, from 0 at the first to `rate` at the last, as the papers raise them."""
    return [rate * i / max(depth - 1, 1) for i in range(depth)]
