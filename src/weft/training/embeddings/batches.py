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
from weft.data.open.source import Source
from weft.data.open.splits import MemorySplit
from weft.data.transform.transforms import TextTransform
from weft.errors import WeftError
from weft.networks.config import EncoderConfig
from weft.training.embeddings.store import Index, VectorStore, vector_store


class EmbeddedBatch:
    """Embeddings of the texts of a batch, padded to the longest's bucket."""

    def __init__(self, split: MemorySplit, store: VectorStore, max_length: int) -> None:
        self.split, self.store, self.max_length = split, store, max_length

    def __call__(self, step: int, index: Index, mine: slice) -> tuple[dict[str, Tensor], Tensor]:
        rows = self.split.rows[index]  # the store holds the whole table
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
    split = source.splits[role]
    if not isinstance(split, MemorySplit):
        raise WeftError(f"{source.name} is streamed, and embeddings are kept for sources in memory; raise --memory")
    train = role == "train" if train is None else train
    tokens = token_store(source, split, transform)
    key = f"embeddings {encoder.digest} {encoder.layers} {id(tokens)}"
    if key not in source.stores:
        source.stores[key] = vector_store(tokens, encoder, f"{source.name}, {split.table.name}")
    store: VectorStore = source.stores[key]
    lengths = store.lengths[split.rows]
    plan = bucketed(lengths, batch_size, seed) if train else in_order(len(split), batch_size)
    assemble = EmbeddedBatch(split, store, transform.max_length)
    return Batches(split, plan, assemble, transform, batch_size, train, rank, world)
