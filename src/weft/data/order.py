"""Which examples make batch number `step`: a function of (seed, step) alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from weft.data import noise
from weft.data.split import Split

Index = NDArray[np.int64]
Plan = Callable[[int], Index]

POOL = 50  # batches that are sorted by length together: enough for little padding, few enough to stay random


def in_order(size: int, batch_size: int) -> Plan:
    """Evaluation: every example once, in order; the last batch may be smaller."""
    return lambda step: np.arange(min(step * batch_size, size), min((step + 1) * batch_size, size))


def shuffled(split: Split, batch_size: int, seed: int) -> Plan:
    """Training: a new order every epoch; the rows that do not fill a batch are left for another epoch's order."""
    batch_size = min(batch_size, len(split))
    steps = len(split) // batch_size

    def plan(step: int) -> Index:
        epoch, number = divmod(step, steps)
        return split.order(noise.key(seed, "order", epoch), number * batch_size, (number + 1) * batch_size)

    return plan


def bucketed(lengths: NDArray[np.int64], batch_size: int, seed: int) -> Plan:
    """Training on text: shuffle, sort pools of batches by length, cut into batches, shuffle the batches."""
    batch_size = min(batch_size, len(lengths))
    steps = len(lengths) // batch_size
    latest: list[tuple[int, Index]] = []  # the epoch at hand and its batches

    def batches_of(epoch: int) -> Index:
        order = noise.permutation(noise.key(seed, "order", epoch), len(lengths))[: steps * batch_size]
        pools = [order[start : start + POOL * batch_size] for start in range(0, len(order), POOL * batch_size)]
        by_length = np.concatenate([pool[np.argsort(lengths[pool], kind="stable")] for pool in pools])
        return by_length.reshape(steps, batch_size)[noise.permutation(noise.key(seed, "batches", epoch), steps)]

    def plan(step: int) -> Index:
        epoch, number = divmod(step, steps)
        if not latest or latest[0][0] != epoch:
            latest[:] = [(epoch, batches_of(epoch))]
        return latest[0][1][number]

    return plan
