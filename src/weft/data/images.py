"""The pixels of a split: all in memory as uint8 where that fits, else decoded by workers for each batch."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.bad import refusal
from weft.data.decode import BadImage
from weft.data.preprocess import ImageTransform
from weft.data.split import Split

Index = NDArray[np.int64]


class Pixels(Protocol):
    """Where a batch's uint8 images come from."""

    def rows(self, index: Index) -> Tensor: ...


class StoredPixels:
    """(examples, channels, size, size) uint8 in memory, perhaps mapped from the cache's file."""

    def __init__(self, store: Tensor) -> None:
        self.store = store

    def rows(self, index: Index) -> Tensor:
        return self.store[torch.from_numpy(index)]


class DecodedPixels:
    """Images decoded by worker threads when they are asked for; the decoders let go of Python's lock."""

    def __init__(self, split: Split, transform: ImageTransform, workers: int) -> None:
        self.split, self.transform = split, transform
        self.pool = ThreadPoolExecutor(workers) if workers > 0 else None

    def rows(self, index: Index) -> Tensor:
        raws, _ = self.split.read(index)
        return self.decode(raws, index)

    def decode(self, raws: Sequence[Any], index: Index) -> Tensor:
        """(batch, channels, size, size) uint8."""
        side = self.transform.size
        out = torch.empty(len(raws), self.transform.channels, side, side, dtype=torch.uint8)

        def one(slot: int) -> None:
            try:
                out[slot] = self.transform.pixels(raws[slot])
            except BadImage as error:
                raise refusal(self.split.place(int(index[slot])), str(error)) from error

        list((self.pool.map if self.pool else map)(one, range(len(raws))))
        return out


def stored(split: Split, transform: ImageTransform, workers: int) -> StoredPixels:
    """Decode a whole split into memory."""
    pixels = DecodedPixels(split, transform, workers)
    chunks = [np.arange(at, min(at + 2048, len(split))) for at in range(0, len(split), 2048)]
    return StoredPixels(torch.cat([pixels.rows(chunk) for chunk in chunks]))
