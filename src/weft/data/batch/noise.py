"""Noise without state: every random number is a hash of what it is for.

A stream is named by a key, `key(seed, "flip", step)`, and an example by its global index. So the same number comes
out whichever worker or rank asks for it, in whichever order, and no generator has to be saved to resume.
The layers of a network draw from `nn/noise.py` in the same manner.
The mixing function is the finaliser of splitmix64 (Steele, Lea and Flood, 2014): it passes the usual batteries of
tests, and is six vectorised operations.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

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
