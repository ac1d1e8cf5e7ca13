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
from torch.nn.functional import one_hot

from weft.data.augment.mixing import partners
from weft.data.augment.pipeline import Augmenter
from weft.data.images import Pixels
from weft.data.preprocess import ImageTransform, TextTransform, VectorTransform
from weft.data.split import MemorySplit, Split
from weft.data.text import TokenStore, bucket, pad_batch

Index = NDArray[np.int64]
Made = tuple[dict[str, Tensor], Tensor]


class ImageBatch:
    """Pixels, augmented when training, normalised; mixed with their partners in the whole batch."""

    def __init__(
        self, split: Split, transform: ImageTransform, pixels: Pixels, augmenter: Augmenter | None, classes: int
    ) -> None:
        self.split, self.transform, self.pixels = split, transform, pixels
        self.augmenter, self.classes = augmenter, classes

    def __call__(self, step: int, index: Index, mine: slice) -> Made:
        if self.augmenter is None or not self.augmenter.mixes:
            images, targets = self._images(step, index[mine])
            return {"x": images}, targets
        return self._mixed(step, index, np.arange(len(index))[mine], self.augmenter)

    def _images(self, step: int, index: Index) -> tuple[Tensor, Tensor]:
        """Normalised images and their targets, each a function of its own example and the step alone."""
        boxes = None if self.augmenter is None else self.augmenter.boxes(step, index)
        pixels, targets, cropped = self.pixels.rows(index, boxes)
        if self.augmenter is None:
            return self.transform.normalize(pixels), _tensor(targets)
        pixels = self.augmenter.pixels(pixels, step, index, cropped)
        return self.augmenter.erase(self.transform.normalize(pixels), step, index), _tensor(targets)

    def _mixed(self, step: int, index: Index, places: Index, augmenter: Augmenter) -> Made:
        """The images at `places` of the whole batch, mixed with partners that may belong to another rank."""
        others = partners(places, len(index))
        needed = np.union1d(places, others)
        images, targets = self._images(step, index[needed])
        if targets.dtype == torch.int64:
            targets = one_hot(targets, max(1, self.classes)).float()
        own, other = np.searchsorted(needed, places), np.searchsorted(needed, others)
        mix = augmenter.mix(step, index[places], images)
        mine, theirs = torch.from_numpy(own), torch.from_numpy(other)
        return {"x": mix.images(images[mine], images[theirs])}, mix.targets(targets[mine], targets[theirs])


class TextBatch:
    """Token ids, padded to the bucket of the whole batch's longest text."""

    def __init__(self, split: Split, transform: TextTransform, store: TokenStore | None) -> None:
        self.split, self.transform, self.store = split, transform, store

    def __call__(self, step: int, index: Index, mine: slice) -> Made:
        limit, pad_id = self.transform.max_length, self.transform.tokenizer.pad_id
        if self.store is not None and isinstance(self.split, MemorySplit):
            rows = self.split.rows[index]  # the store holds the whole table
            width = bucket(int(self.store.lengths[rows].max(initial=1)), limit)
            inputs = pad_batch(self.store.rows(rows[mine]), pad_id, limit, width)
            return inputs, _tensor(self.split.targets[index[mine]])
        raws, targets = self.split.read(index)
        encoded = self.transform.encode(list(raws))
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
