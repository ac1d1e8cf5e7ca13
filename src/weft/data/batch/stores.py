"""Decoded images and token ids of a source's tables: made once, kept in the cache and, while it is open, in memory."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.batch.token_batches import TokenStore, pack
from weft.data.open.source import Source
from weft.data.open.splits import MemorySplit, Split
from weft.data.read.cache import Cache, Tensors, digest
from weft.data.read.decode import BadImage
from weft.data.sources.table import refusal
from weft.data.transform.transforms import ImageTransform, TextTransform

VERSION = "2"  # raise it when the same transform would give other tensors


def pixels_of(source: Source, split: Split, transform: ImageTransform, workers: int) -> Pixels:
    """A split's images, in memory if all of its table fits there, else decoded as they are needed."""
    if isinstance(split, MemorySplit) and _fits(source, split, transform):
        return StoredPixels(split, pixel_store(source, split, transform, workers))
    return DecodedPixels(split, transform, workers)


def _fits(source: Source, split: MemorySplit, transform: ImageTransform) -> bool:
    return len(split.table) * transform.channels * transform.size**2 <= source.config.memory


def undecoded(source: Source, transform: ImageTransform) -> int:
    """Encoded images that have to be decoded before the first batch: all of a table that fits into memory, where they
    are not in the cache."""
    found: dict[str, int] = {}
    for split in (source.splits[role] for role in ("train", "validation", "test")):
        if not isinstance(split, MemorySplit) or isinstance(split.table.inputs, np.ndarray):
            continue
        key = _pixel_key(source, split, transform)
        if _fits(source, split, transform) and key not in split.table.stores and key not in Cache():
            found[key] = len(split.table) - len(split.table.skipped)
    return sum(found.values())


def pixel_store(source: Source, split: MemorySplit, transform: ImageTransform, workers: int) -> Tensor:
    """All images of the split's table as `transform` makes them, uint8."""
    key, stores = _pixel_key(source, split, transform), split.table.stores
    if key not in stores and isinstance(split.table.inputs, np.ndarray):
        stores[key] = decode_all(split, transform, workers)  # not encoded: as quick to make as to load
    if key not in stores:
        about = f"images of {source.name}, {split.table.name}, at {transform.size} px"
        built = Cache().get(key, about, lambda: {"pixels": decode_all(split, transform, workers)})
        stores[key] = built["pixels"]
    store: Tensor = stores[key]
    return store


def _pixel_key(source: Source, split: MemorySplit, transform: ImageTransform) -> str:
    recipe = f"{transform.size} {transform.channels} {transform.crop} {transform.max_pixels}"
    return _key(source, split, "pixels", recipe)


def token_store(source: Source, split: MemorySplit, transform: TextTransform) -> TokenStore:
    """The ids of all texts of the split's table; a skipped row has none."""
    key = _key(source, split, "tokens", f"{transform.max_length} {transform.tokenizer.content()}")

    def build() -> dict[str, Tensor]:
        texts = [None if row in split.table.skipped else text for row, text in enumerate(split.table.inputs)]
        encoded = iter(transform.encode([text for text in texts if text is not None]))
        packed = pack([([], []) if text is None else next(encoded) for text in texts])
        return {name: torch.from_numpy(array) for name, array in vars(packed).items()}

    if key not in source.stores:
        about = f"tokens of {source.name}, {split.table.name}, at most {transform.max_length} a text"
        loaded = Cache().get(key, about, build)
        source.stores[key] = TokenStore(**{name: tensor.numpy() for name, tensor in loaded.items()})
    store: TokenStore = source.stores[key]
    return store


def made_once(source: Source, kind: str, about: str, build: Callable[[], Tensors], *recipe: bytes | str) -> Tensors:
    """What `build` makes of a source, from the cache if it was made before; `recipe` is all that decides it beside the
    files, and `about` says what it is, for listings."""
    return Cache().get(digest(kind, VERSION, source.fingerprint, *recipe), about, build)


def _key(source: Source, split: MemorySplit, kind: str, recipe: str) -> str:
    """What decides the tensors of a table: the files, which of their columns and rows are read, and how."""
    skipped = ",".join(map(str, sorted(split.table.skipped)))
    columns = json.dumps([source.modality, *source.columns])
    return digest(VERSION, kind, source.fingerprint, columns, split.table.name, skipped, recipe)


# ---- The pixels of a split: all in memory as uint8 where that fits, else decoded by workers for each batch.

Index = NDArray[np.int64]
Boxes = NDArray[np.float64]
WORTH_SAYING = 3.0  # seconds of work that a user would wonder about
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
    chunks, started = np.array_split(np.arange(len(good)), math.ceil(len(good) / CHUNK)), time.perf_counter()
    for number, chunk in enumerate(chunks):
        store[torch.from_numpy(good[chunk])] = pixels.rows(chunk, None)[0]
        left = (time.perf_counter() - started) * (len(chunks) - 1)
        if number == 0 and left > WORTH_SAYING:
            arrays = isinstance(table.inputs, np.ndarray)
            what, where = ("preparing", "in memory") if arrays else ("decoding", "in the cache")
            sentence = f"{what} {len(good):,} images, once; they are kept {where}: about {left:.0f} s"
            print(sentence, file=sys.stderr, flush=True)
    return store
