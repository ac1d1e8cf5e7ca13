"""Token ids of a whole split in one flat array, and their batches, padded to a bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

BUCKET = 8
"""Lengths are rounded up to a multiple of this, so that few shapes occur: kernels and compiled graphs are reused."""


@dataclass(frozen=True)
class TokenStore:
    """Ids and segments of all texts, end to end; text i is [offsets[i], offsets[i + 1])."""

    ids: NDArray[np.int32]
    segments: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def rows(self, index: NDArray[np.int64]) -> list[tuple[NDArray[np.int32], NDArray[np.uint8]]]:
        """(ids, segments) of each text."""
        spans = [slice(self.offsets[i], self.offsets[i + 1]) for i in index]
        return [(self.ids[span], self.segments[span]) for span in spans]


def pack(encoded: Sequence[tuple[Sequence[int], Sequence[int]]]) -> TokenStore:
    """One store from (ids, segments) of each text."""
    lengths = np.fromiter((len(ids) for ids, _ in encoded), np.int64, len(encoded))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    total = int(offsets[-1])
    ids = np.fromiter((token for ids, _ in encoded for token in ids), np.int32, total)
    segments = np.fromiter((segment for _, row in encoded for segment in row), np.uint8, total)
    return TokenStore(ids, segments, offsets)


def bucket(length: int, max_length: int) -> int:
    """`length` rounded up to a full bucket, though never above `max_length`."""
    return min(max_length, -(-length // BUCKET) * BUCKET)


def pad_batch(
    rows: Sequence[tuple[Sequence[int] | NDArray[np.int32], Sequence[int] | NDArray[np.uint8]]],
    pad_id: int,
    max_length: int,
    width: int | None = None,
) -> dict[str, Tensor]:
    """{"x", "segments"}: (batch, tokens) int64, "mask": True at real tokens; `width` or the longest's bucket wide."""
    longest = max((len(ids) for ids, _ in rows), default=1)
    width = bucket(longest, max_length) if width is None else width
    x = np.full((len(rows), width), pad_id, dtype=np.int64)
    segments = np.zeros_like(x)
    mask = np.zeros(x.shape, dtype=bool)
    for row, (ids, parts) in enumerate(rows):
        x[row, : len(ids)] = ids
        segments[row, : len(ids)] = parts
        mask[row, : len(ids)] = True
    return {"x": torch.from_numpy(x), "mask": torch.from_numpy(mask), "segments": torch.from_numpy(segments)}
