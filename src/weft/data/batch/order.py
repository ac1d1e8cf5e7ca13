"""Which examples make batch number `step`: a function of (seed, step) alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from weft.data.batch.noise import key, permutation
from weft.data.open.splits import Split

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
