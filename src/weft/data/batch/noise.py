"""Noise without state: every random number is a hash of what it is for; and the order of examples, which follows.

A stream is named by a key, `key(seed, "flip", step)`, and an example by its global index. So the same number comes
out whichever worker or rank asks for it, in whichever order, and no generator has to be saved to resume.
The layers of a network draw from `nn/noise.py` in the same manner.
The mixing function is the finaliser of splitmix64 (Steele, Lea and Flood, 2014): it passes the usual batteries of
tests, and is six vectorised operations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from weft.data.open.splits import Split

_GAMMA = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: consecutive integers land far apart
_MASK = (1 << 64) - 1


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def key(*parts: int | str) -> int:
    """One 64-bit key for a tuple of words and integers; a different tuple gives an unrelated key."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def bits(stream: int, index: NDArray[np.int64], draw: int = 0) -> NDArray[np.uint64]:
    """(n,) 64 random bits for each example index; `draw` numbers the values that one example needs."""
    start = np.uint64((stream + draw * 0xD1342543DE82EF95) & _MASK)
    return _mix(_mix(index.astype(np.uint64) * _GAMMA + start) + _GAMMA)


def uniform(stream: int, index: NDArray[np.int64], count: int = 1) -> NDArray[np.float64]:
    """(n, count) uniform numbers in [0, 1), a row for each example index."""
    columns = [(bits(stream, index, draw) >> np.uint64(11)) * 2.0**-53 for draw in range(count)]
    return np.stack(columns, axis=1)


def permutation(stream: int, size: int) -> NDArray[np.int64]:
    """A random order of range(size): the indices sorted by their hash."""
    return np.argsort(bits(stream, np.arange(size)), kind="stable")


# ---- Which examples make batch number `step`: a function of (seed, step) alone.

Index = NDArray[np.int64]
Plan = Callable[[int], Index]

POOL = 50  # batches that are sorted by length together: enough for little padding, few enough to stay random
STREAM_POOL = 8  # the same where all of a pool has to be read first


def in_order(size: int, batch_size: int) -> Plan:
    """Evaluation: every example once, in order; the last batch may be smaller."""
    return lambda step: np.arange(min(step * batch_size, size), min((step + 1) * batch_size, size))


def shuffled(split: Split, batch_size: int, seed: int) -> Plan:
    """Training: a new order every epoch; the rows that do not fill a batch are left for another epoch's order."""
    batch_size = min(batch_size, len(split))
    steps = len(split) // batch_size

    def plan(step: int) -> Index:
        epoch, number = divmod(step, steps)
        return split.order(key(seed, "order", epoch), number * batch_size, (number + 1) * batch_size)

    return plan


def bucketed(lengths: NDArray[np.int64], batch_size: int, seed: int) -> Plan:
    """Training on text: shuffle, sort pools of batches by length, cut into batches, shuffle the batches."""
    batch_size = min(batch_size, len(lengths))
    steps = len(lengths) // batch_size

    @lru_cache(maxsize=2)  # while one epoch ends, the next begins
    def batches_of(epoch: int) -> Index:
        order = permutation(key(seed, "order", epoch), len(lengths))[: steps * batch_size]
        pools = [order[start : start + POOL * batch_size] for start in range(0, len(order), POOL * batch_size)]
        by_length = np.concatenate([pool[np.argsort(lengths[pool], kind="stable")] for pool in pools])
        return by_length.reshape(steps, batch_size)[permutation(key(seed, "batches", epoch), steps)]

    return lambda step: batches_of(step // steps)[step % steps]


def bucketed_stream(split: Split, batch_size: int, seed: int) -> Plan:
    """The same for streamed text: smaller pools, sorted by letters, for which only the pool's rows are read."""
    batch_size = min(batch_size, len(split))
    steps = len(split) // batch_size

    @lru_cache(maxsize=2)
    def batches_of(epoch: int, pool: int) -> Index:
        first, last = pool * STREAM_POOL, min((pool + 1) * STREAM_POOL, steps)
        order = split.order(key(seed, "order", epoch), first * batch_size, last * batch_size)
        letters = [len(text) if isinstance(text, str) else sum(map(len, text)) for text in split.read(order)[0]]
        by_length = order[np.argsort(letters, kind="stable")].reshape(last - first, batch_size)
        return by_length[permutation(key(seed, "batches", epoch, pool), last - first)]

    def plan(step: int) -> Index:
        epoch, number = divmod(step, steps)
        return batches_of(epoch, number // STREAM_POOL)[number % STREAM_POOL]

    return plan
