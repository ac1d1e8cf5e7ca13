"""Batches of contextual embeddings in place of ids, for networks that stand on a trained encoder."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft.data.batch.loader import Batches
from weft.data.batch.noise import bucketed, in_order
from weft.data.batch.stores import token_store
from weft.data.batch.token_batches import bucket
from weft.data.open.source import ROLES, Source
from weft.data.open.splits import MemorySplit
from weft.data.read.cache import digest
from weft.data.transform.transforms import TextTransform
from weft.errors import WeftError
from weft.networks.config import EncoderConfig
from weft.training.embeddings.store import Index, VectorStore, vector_store


class EmbeddedBatch:
    """Embeddings of the texts of a batch, padded to the longest's bucket; `places` are those of the split's examples
    in the store."""

    def __init__(self, split: MemorySplit, store: VectorStore, places: Index, max_length: int) -> None:
        self.split, self.store, self.places, self.max_length = split, store, places, max_length

    def __call__(self, step: int, index: Index, mine: slice) -> tuple[dict[str, Tensor], Tensor]:
        rows = self.places[index]
        width = bucket(int(self.store.lengths[rows].max(initial=1)), self.max_length)
        targets: Any = np.ascontiguousarray(self.split.targets[index[mine]])
        return padded(self.store.rows(rows[mine]), width, self.store.parts[0].shape[1]), torch.from_numpy(targets)


def padded(rows: list[Tensor], width: int, channels: int) -> dict[str, Tensor]:
    """{"x": (batch, width, channels) float32, "mask": (batch, width), true at real tokens}; zeros in the padding."""
    x = torch.zeros(len(rows), width, channels)
    mask = torch.zeros(len(rows), width, dtype=torch.bool)
    for place, vectors in enumerate(rows):
        x[place, : len(vectors)] = vectors
        mask[place, : len(vectors)] = True
    return {"x": x, "mask": mask}


def embedded_batches(
    source: Source,
    role: str,
    transform: TextTransform,
    encoder: EncoderConfig,
    *,
    batch_size: int,
    seed: int = 0,
    train: bool | None = None,
    rank: int = 0,
    world: int = 1,
) -> Batches:
    """What `weft.data.batches` gives, example for example, with the encoder's embeddings in place of ids."""
    split, rows = in_memory(source, role), rows_read(source, role)
    train = role == "train" if train is None else train
    tokens = token_store(source, split, transform)
    key = f"embeddings {encoder.digest} {encoder.layers} {id(tokens)} {digest(rows.tobytes())}"
    if key not in source.stores:
        source.stores[key] = vector_store(tokens, encoder, f"{source.name}, {split.table.name}", rows=rows)
    store: VectorStore = source.stores[key]
    places = np.searchsorted(rows, split.rows)
    plan = bucketed(store.lengths[places], batch_size, seed) if train else in_order(len(split), batch_size)
    assemble = EmbeddedBatch(split, store, places, transform.max_length)
    return Batches(split, plan, assemble, transform, batch_size, train, rank, world)


def in_memory(source: Source, role: str) -> MemorySplit:
    split = source.splits[role]
    if not isinstance(split, MemorySplit):
        raise WeftError(f"{source.name} is streamed, and embeddings are kept for sources in memory; raise --memory")
    return split


def rows_read(source: Source, role: str) -> Index:
    """The rows of a split's table that a run reads, in order: all of them, unless it learns from or is judged by some
    alone. Folds of a cross-validation, which together have all, share them."""
    table = in_memory(source, role).table
    if source.config.folds is not None:
        return np.arange(len(table))
    splits = [source.splits[name] for name in (*ROLES, role)]
    several = [split.rows for split in splits if isinstance(split, MemorySplit) and split.table is table]
    found = np.unique(np.concatenate(several))
    return found if len(found) + len(table.skipped) < len(table) else np.arange(len(table))


def tokens_read(source: Source, transform: TextTransform) -> int:
    """Tokens of all texts that a run reads."""
    tables = {id(in_memory(source, role).table): role for role in ROLES}  # one for two roles is read once
    stores = {role: token_store(source, in_memory(source, role), transform) for role in tables.values()}
    return sum(int(store.lengths[rows_read(source, role)].sum()) for role, store in stores.items())
