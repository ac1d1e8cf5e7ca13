"""`batches`: a split becomes batches of tensors, each a pure function of (seed, step).

loader = batches(source, "train", batch_size=128, seed=0)
loader[1000]                         # the same batch whichever were made before it
for batch in loader.range(0, 500):   # the next one is prepared while this one trains
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from weft import machine
from weft.data.augment.mixing import partners
from weft.data.augment.pipeline import Augmenter
from weft.data.batch.noise import Plan, bucketed, bucketed_stream, in_order, shuffled
from weft.data.batch.stores import Pixels, pixels_of, token_store
from weft.data.batch.token_batches import TokenStore, bucket, pad_batch
from weft.data.config import AugmentConfig, TransformConfig
from weft.data.open.source import Source
from weft.data.open.splits import MemorySplit, Split
from weft.data.transform.fit import fit
from weft.data.transform.tokenizer import Tokenizer
from weft.data.transform.transforms import ImageTransform, TextTransform, Transform, VectorTransform
from weft.errors import WeftError, nearest

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """One rank's slice of a batch."""

    inputs: dict[str, Tensor]  # the network's arguments: x; for text also mask and segments
    targets: Tensor  # (batch,) int64, float32, or float64 where float32 loses digits; (batch, classes) when mixed
    index: Tensor  # (batch,) int64: the examples' numbers in their split
    size: int  # examples in the whole batch, over all ranks


def as_it_is(batch: Batch) -> Batch:
    return batch


class Assembler(Protocol):
    """Makes the tensors of some places of a global batch."""

    def __call__(self, step: int, index: Index, mine: slice) -> tuple[dict[str, Tensor], Tensor]: ...


class Batches:
    """The batches of a split, by number."""

    def __init__(
        self, split: Sized, plan: Plan, assemble: Assembler, transform: Transform | None,
        batch_size: int, train: bool, rank: int, world: int,
    ) -> None:  # fmt: skip
        self.split, self.plan, self.assemble, self.transform = split, plan, assemble, transform
        self.rank, self.world = rank, world
        full, rest = divmod(len(split), batch_size)
        self.steps_per_epoch = max(1, full) if train else full + bool(rest)
        self.last = None if train else self.steps_per_epoch  # training has no last batch, evaluation has
        self.complete: Callable[[Batch], Batch] = as_it_is

    def __len__(self) -> int:
        return self.steps_per_epoch

    def __getitem__(self, step: int) -> Batch:
        return self.complete(self._assembled(step))

    def _assembled(self, step: int) -> Batch:
        if step < 0 or (self.last is not None and step >= self.last):
            raise IndexError(f"there is no batch {step}; the first is 0 and an epoch has {self.steps_per_epoch}")
        index = self.plan(step)
        mine = slice(len(index) * self.rank // self.world, len(index) * (self.rank + 1) // self.world)
        inputs, targets = self.assemble(step, index, mine)
        return Batch(inputs, targets, torch.from_numpy(index[mine].copy()), len(index))

    def completed(self, complete: Callable[[Batch], Batch]) -> Batches:
        """The same batches, each changed by `complete`: in the thread that asks, as it may compute much."""
        found = copy(self)
        found.complete = complete
        return found

    def range(self, first: int = 0, last: int | None = None, ahead: int = 2) -> Iterator[Batch]:
        """Batches first, ..., last - 1 in order (by default one epoch), `ahead` of them prepared in the background."""
        last = self.steps_per_epoch if last is None else last
        with ThreadPoolExecutor(1) as pool:
            waiting = [pool.submit(self._assembled, step) for step in range(first, min(first + ahead, last))]
            for step in range(first, last):
                batch = waiting.pop(0).result()
                if step + ahead < last:
                    waiting.append(pool.submit(self._assembled, step + ahead))
                yield self.complete(batch)

    def __iter__(self) -> Iterator[Batch]:
        return self.range()


def batches(
    source: Source,
    role: str = "train",
    batch_size: int = 128,
    seed: int = 0,
    transform: Transform | TransformConfig | None = None,
    augment: AugmentConfig | None = None,
    train: bool | None = None,
    rank: int = 0,
    world: int = 1,
    workers: int | None = None,
    tokenizer: Tokenizer | None = None,
) -> Batches:
    """Batches of a split: shuffled and augmented when training (by default for the role `train`), else in order."""
    if role not in source.splits:
        raise WeftError(
            f"{source.name} has no split {role!r}; {nearest(role, source.splits)} "
            f"choose one of {', '.join(source.splits)}"
        )
    split = source.splits[role]
    train = role == "train" if train is None else train
    workers = min(8, machine.cores()) if workers is None else workers
    if transform is None or isinstance(transform, TransformConfig):
        transform = fit(source, transform, tokenizer)
    augmenter = Augmenter(augment, seed) if train and augment is not None and augment.random else None
    assemble, lengths = _assembler(source, split, transform, augmenter, workers)
    if not train:
        plan = in_order(len(split), batch_size)
    elif lengths is not None:
        plan = bucketed(lengths, batch_size, seed)
    elif isinstance(transform, TextTransform):
        plan = bucketed_stream(split, batch_size, seed)
    else:
        plan = shuffled(split, batch_size, seed)
    return Batches(split, plan, assemble, transform, batch_size, train, rank, world)


def _assembler(
    source: Source, split: Split, transform: Transform, augmenter: Augmenter | None, workers: int
) -> tuple[Assembler, NDArray[np.int64] | None]:
    """What makes the tensors, and the texts' lengths where batches are to be bucketed by them."""
    if isinstance(transform, ImageTransform):
        return ImageBatch(
            split, transform, pixels_of(source, split, transform, workers), augmenter, len(source.classes)
        ), None
    if isinstance(transform, TextTransform):
        if not isinstance(split, MemorySplit):
            return TextBatch(split, transform, None), None
        store = token_store(source, split, transform)
        return TextBatch(split, transform, store), store.lengths[split.rows]
    return VectorBatch(split, transform), None


# ---- From the indices of a batch to its tensors, one class a modality.

Made = tuple[dict[str, Tensor], Tensor]


class ImageBatch:
    """Pixels, augmented when training, normalised; mixed with their partners in the whole batch."""

    def __init__(
        self, split: Split, transform: ImageTransform, pixels: Pixels, augmenter: Augmenter | None, classes: int
    ) -> None:
        self.split, self.transform, self.pixels = split, transform, pixels
        self.augmenter, self.classes = augmenter, classes

    def __call__(self, step: int, index: Index, mine: slice) -> Made:
        if self.augmenter is None or not self.augmenter.config.mixes:
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
        centred = any(self.transform.mean)
        return self.augmenter.erase(self.transform.normalize(pixels), step, index, centred), _tensor(targets)

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
