"""The pixels of a split: all in memory as uint8 where that fits, else decoded by workers for each batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.bad import refusal
from weft.data.decode import BadImage
from weft.data.preprocess import ImageTransform
from weft.data.split import MemorySplit, Split

Index = NDArray[np.int64]
Boxes = NDArray[np.float64]
CHUNK = 1024  # images decoded at a time while a store is filled
# Bytes below which decoding a file happens mostly under Python's lock, so that threads only fight over it: CIFAR-10's
# 60,000 took 16.2 s with two threads and 12.8 s with one.
SMALL = 8192


class Pixels(Protocol):
    """Where a batch's images come from."""

    def rows(self, index: Index, boxes: Boxes | None) -> tuple[Tensor, NDArray[Any], bool]:
        """uint8 (batch, channels, size, size), the targets, and whether the boxes have been cut out already."""
        ...


class StoredPixels:
    """All images of the split's table in memory, (rows, channels, size, size) uint8, perhaps mapped from a file."""

    def __init__(self, split: MemorySplit, store: Tensor) -> None:
        self.split, self.store = split, store

    def rows(self, index: Index, boxes: Boxes | None) -> tuple[Tensor, NDArray[Any], bool]:
        rows = torch.from_numpy(self.split.rows[index])
        return self.store[rows], self.split.targets[index], False


class DecodedPixels:
    """Images decoded by worker threads when they are asked for; the decoders let go of Python's lock."""

    def __init__(self, split: Split, transform: ImageTransform, workers: int) -> None:
        self.split, self.transform, self.workers = split, transform, workers
        self.pool = ThreadPoolExecutor(workers) if workers > 1 else None

    def rows(self, index: Index, boxes: Boxes | None) -> tuple[Tensor, NDArray[Any], bool]:
        raws, targets = self.split.read(index)
        transform = self.transform

        def one(slot: int) -> Tensor:
            try:
                return transform.pixels(raws[slot]) if boxes is None else transform.crop_of(raws[slot], boxes[slot])
            except BadImage as error:
                raise refusal(self.split.place(int(index[slot])), str(error)) from error

        small = all(isinstance(raw, bytes) and len(raw) < SMALL for raw in raws)
        images = [one(slot) for slot in range(len(raws))] if small else self._share_out(one, len(raws))
        empty = torch.empty(0, transform.channels, transform.size, transform.size, dtype=torch.uint8)
        return (torch.stack(images) if images else empty), targets, boxes is not None

    def _share_out(self, one: Callable[[int], Tensor], count: int) -> list[Tensor]:
        """one(0), ..., one(count - 1), a run of them for each worker: a task for each would cost too much."""
        if self.pool is None:
            return [one(slot) for slot in range(count)]
        runs = np.array_split(np.arange(count), self.workers)
        done = self.pool.map(lambda run: [one(int(slot)) for slot in run], runs)
        return [image for images in done for image in images]


def decode_all(split: MemorySplit, transform: ImageTransform, workers: int) -> Tensor:
    """(rows, channels, size, size) uint8: every row of the split's table, black where a bad one was skipped."""
    table = split.table
    if isinstance(table.inputs, np.ndarray) and table.inputs.shape[1:] == (transform.channels, *[transform.size] * 2):
        return torch.from_numpy(table.inputs)
    good = np.setdiff1d(np.arange(len(table)), np.array(sorted(table.skipped), dtype=np.int64))
    whole = MemorySplit(table, good, good, split.origin)
    pixels = DecodedPixels(whole, transform, workers)
    store = torch.zeros(len(table), transform.channels, transform.size, transform.size, dtype=torch.uint8)
    for chunk in np.array_split(np.arange(len(good)), math.ceil(len(good) / CHUNK)):
        store[torch.from_numpy(good[chunk])] = pixels.rows(chunk, None)[0]
    return store
