"""From the indices of a batch to its tensors, one class a modality.

Each is called with the whole batch's indices and the slice that this rank wants, and makes the tensors of that slice
alone; what depends on the neighbours (a text's padding, a mixed image's partner) is taken from the whole batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.config import AugmentConfig
from weft.data.images import Pixels
from weft.data.preprocess import ImageTransform, TextTransform, VectorTransform
from weft.data.split import Split
from weft.data.text import TokenStore, bucket, pad_batch

Index = NDArray[np.int64]
Made = tuple[dict[str, Tensor], Tensor]


class ImageBatch:
    """Pixels, augmented if asked, normalised."""

    def __init__(
        self,
        split: Split,
        transform: ImageTransform,
        pixels: Pixels,
        augment: AugmentConfig | None,
        seed: int,
        classes: int,
    ) -> None:
        self.split, self.transform, self.pixels = split, transform, pixels
        self.augment, self.seed, self.classes = augment, seed, classes

    def __call__(self, step: int, index: Index, mine: slice) -> Made:
        x = self.transform.normalize(self.pixels.rows(index[mine]))
        return {"x": x}, _tensor(self.split.targets[index[mine]])


class TextBatch:
    """Token ids, padded to the bucket of the whole batch's longest text."""

    def __init__(self, split: Split, transform: TextTransform, store: TokenStore | None) -> None:
        self.split, self.transform, self.store = split, transform, store

    def __call__(self, step: int, index: Index, mine: slice) -> Made:
        limit, pad_id = self.transform.max_length, self.transform.tokenizer.pad_id
        if self.store is not None:
            width = bucket(int(self.store.lengths[index].max(initial=1)), limit)
            return pad_batch(self.store.rows(index[mine]), pad_id, limit, width), _tensor(
                self.split.targets[index[mine]]
            )
        raws, targets = self.split.read(index)
        encoded = self.transform.encode(raws)
        width = bucket(max((len(ids) for ids, _ in encoded), default=1), limit)
        return pad_batch(encoded[mine], pad_id, limit, width), _tensor(targets[mine])


class VectorBatch:
    """Rows of floats, normalised."""

    def __init__(self, split: Split, transform: VectorTransform) -> None:
        self.split, self.transform = split, transform

    def __call__(self, step: int, index: Index, mine: slice) -> Made:
        rows, targets = self.split.read(index[mine])
        return {"x": self.transform.normalize(np.asarray(rows).reshape(-1, self.transform.features))}, _tensor(targets)


def _tensor(targets: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(targets))
