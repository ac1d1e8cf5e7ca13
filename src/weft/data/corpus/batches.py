"""Sequences with their masks as batches, each a pure function of (seed, step): the same `Batches` as everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.batch import noise
from weft.data.batch.loader import Batches
from weft.data.batch.noise import bucketed, in_order
from weft.data.batch.token_batches import bucket
from weft.data.corpus.masking import UNASKED, Masking
from weft.data.corpus.sequences import Row, Sequences

Index = NDArray[np.int64]


@dataclass(frozen=True)
class MaskedBatch:
    """Makes the tensors of a batch. With `role` set the noise is that of the role, the same at every evaluation."""

    sequences: Sequences
    masking: Masking
    pad_id: int
    max_length: int
    seed: int
    role: str | None = None

    def __call__(self, step: int, index: Index, mine: slice) -> tuple[dict[str, Tensor], Tensor]:
        """Inputs {"x", "answers"} (batch, tokens), {"follows"} (batch,); "mask" and "segments" where there are any.

        Targets (batch, 2) float32: how many tokens are asked for, and whether it is asked what follows.
        """
        when = step if self.role is None else self.role
        rows = self.sequences.rows(noise.key(self.seed, "pairs", when), index)
        lengths = np.array([len(row.ids) for row in rows], dtype=np.int64)
        width = bucket(int(lengths.max(initial=1)), self.max_length)
        x, real, segments = _padded(rows[mine], width, self.pad_id)
        answers = np.full_like(x, UNASKED)
        if self.masking.share:
            x, answers = self.masking(x, real, index[mine], noise.key(self.seed, "mask", when))
        follows = np.array([row.follows for row in rows[mine]], dtype=np.int64)
        inputs: dict[str, NDArray[Any]] = {"x": x, "answers": answers, "follows": follows}
        if lengths.min(initial=width) < width:  # nobody need look at padding that is not there
            inputs["mask"] = real
        if any(row.second < len(row.ids) for row in rows):
            inputs["segments"] = segments
        asked = np.stack([(answers != UNASKED).sum(1), follows != UNASKED], axis=1).astype(np.float32)
        return {name: torch.from_numpy(array) for name, array in inputs.items()}, torch.from_numpy(asked)


def _padded(rows: list[Row], width: int, pad_id: int) -> tuple[Index, NDArray[np.bool_], Index]:
    """Ids, which of them are real, and segments: (batch, width) each."""
    x = np.full((len(rows), width), pad_id, dtype=np.int64)
    real = np.zeros(x.shape, dtype=bool)
    segments = np.zeros_like(x)
    for number, row in enumerate(rows):
        x[number, : len(row.ids)] = row.ids
        real[number, : len(row.ids)] = True
        segments[number, row.second : len(row.ids)] = 1
    return x, real, segments


def masked_batches(
    sequences: Sequences, assemble: MaskedBatch, batch_size: int, seed: int, rank: int, world: int
) -> Batches:
    """Shuffled and sorted by length in pools for training, else every sequence once in order."""
    train = assemble.role is None
    plan = bucketed(sequences.lengths, batch_size, seed) if train else in_order(len(sequences), batch_size)
    return Batches(sequences, plan, assemble, None, batch_size, train, rank, world)
