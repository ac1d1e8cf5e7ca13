"""Decoded images and token ids of a source's tables: made once, kept in the cache and, while it is open, in memory."""

from __future__ import annotations

import json

import numpy as np
import torch
from torch import Tensor

from weft.data.cache import Cache
from weft.data.fingerprint import digest
from weft.data.images import DecodedPixels, Pixels, StoredPixels, decode_all
from weft.data.preprocess import ImageTransform, TextTransform
from weft.data.source import Source
from weft.data.split import MemorySplit, Split
from weft.data.text import TokenStore, pack

VERSION = "2"  # raise it when the same transform would give other tensors


def pixels_of(source: Source, split: Split, transform: ImageTransform, workers: int) -> Pixels:
    """A split's images, in memory if all of its table fits there, else decoded as they are needed."""
    if isinstance(split, MemorySplit):
        size = len(split.table) * transform.channels * transform.size**2
        if size <= source.config.memory:
            return StoredPixels(split, pixel_store(source, split, transform, workers))
    return DecodedPixels(split, transform, workers)


def pixel_store(source: Source, split: MemorySplit, transform: ImageTransform, workers: int) -> Tensor:
    """All images of the split's table as `transform` makes them, uint8."""
    if isinstance(split.table.inputs, np.ndarray):
        return decode_all(split, transform, workers)  # not encoded: as quick to make as to load
    recipe = f"{transform.size} {transform.channels} {transform.crop} {transform.max_pixels}"
    key = _key(source, split, "pixels", recipe)
    if key not in source.stores:
        about = f"images of {source.name}, {split.table.name}, at {transform.size} px"
        built = Cache().get(key, about, lambda: {"pixels": decode_all(split, transform, workers)})
        source.stores[key] = built["pixels"]
    store: Tensor = source.stores[key]
    return store


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


def _key(source: Source, split: MemorySplit, kind: str, recipe: str) -> str:
    """What decides the tensors of a table: the files, which of their columns and rows are read, and how."""
    skipped = ",".join(map(str, sorted(split.table.skipped)))
    columns = json.dumps([source.modality, *source.columns])
    return digest(VERSION, kind, source.fingerprint, columns, split.table.name, skipped, recipe)
