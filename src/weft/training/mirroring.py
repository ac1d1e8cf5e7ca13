"""Do mirrored copies help or hurt? Tried on the training and validation rows with a classifier that takes seconds.

Mirrored letters are other letters, or none; a mirrored cat is a cat. Names of classes tell that now and then, the
pictures tell it themselves: ridge regression on HOG features answers rows that it has not seen, once after learning
from the others alone and once from their mirrored copies too. Of the rows that only one of the two gets right, more
than luck would give must fall to one side (McNemar's exact test). The test split is not looked at; the answer is kept.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from weft.data.batch.stores import WORTH_SAYING, made_once
from weft.data.open.source import Source
from weft.data.open.splits import MemorySplit
from weft.data.transform.transforms import ImageTransform
from weft.training.baseline import deciding, examples, hog, seen_through

ROWS, FOLDS = 800, 4  # rows of each split looked at, and parts of them that are answered by the others
SIDE = 64  # px of the pictures, at most
LEVEL = 0.025  # of luck, on either side
CHUNK = 64  # pictures after which it is known how long all of them take

Features = NDArray[np.float32]


@dataclass(frozen=True)
class Mirroring:
    """How many rows only the classifier without mirrored copies gets right, only the one with them, and of how many."""

    without: int
    with_copies: int
    rows: int

    @property
    def hurts(self) -> bool:
        return beyond_luck(self.without, self.with_copies)

    @property
    def helps(self) -> bool:
        return beyond_luck(self.with_copies, self.without)

    def __str__(self) -> str:
        changed = f"loses {self.without} and wins {self.with_copies} of {self.rows:,} rows"
        return f"with mirrored copies to learn from, a quick classifier {changed}"


def beyond_luck(more: int, fewer: int) -> bool:
    """Whether luck would seldom give so many of `more + fewer` tosses to one side."""
    tosses = more + fewer
    return sum(math.comb(tosses, heads) for heads in range(fewer + 1)) / 2**tosses < LEVEL


def try_mirroring(source: Source, transform: ImageTransform) -> Mirroring | None:
    """What mirrored copies do to a quick classifier of this source; None where that cannot be tried."""
    splits = [split for role in ("train", "validation") if isinstance(split := source.splits[role], MemorySplit)]
    if len(splits) < 2 or not source.classes:
        return None
    small = replace(transform, size=min(transform.size, SIDE))
    recipe = (*deciding(source, ("train", "validation")), *seen_through(small))

    def build() -> dict[str, torch.Tensor]:
        return {"counts": torch.tensor(tried(splits, small))}

    about = f"whether mirroring hurts on {source.name}"
    return Mirroring(*made_once(source, "mirroring", about, build, *recipe)["counts"].tolist())


def tried(splits: list[MemorySplit], transform: ImageTransform) -> tuple[int, int, int]:
    """The counts of a `Mirroring`."""
    parts = [examples(split, ROWS) for split in splits]
    targets = np.concatenate([wanted for _, wanted in parts])
    plain, mirrored = both_ways([raw for raws, _ in parts for raw in raws], transform)
    fold = np.random.default_rng(0).permutation(len(targets)) % FOLDS
    alone, both = np.zeros(len(targets), bool), np.zeros(len(targets), bool)
    for number in range(FOLDS):
        seen, asked = fold != number, fold == number
        alone[asked] = answered(plain[seen], targets[seen], plain[asked]) == targets[asked]
        learnt, labels = np.concatenate([plain[seen], mirrored[seen]]), np.tile(targets[seen], 2)
        both[asked] = answered(learnt, labels, plain[asked]) == targets[asked]
    return int((alone & ~both).sum()), int((both & ~alone).sum()), len(targets)


def both_ways(raws: list[Any], transform: ImageTransform) -> tuple[Features, Features]:
    """HOG of images and of their mirrored copies, some at a time; how long that takes is said where it takes long."""
    found: list[tuple[Features, Features]] = []
    began = time.perf_counter()
    for first in range(0, len(raws), CHUNK):
        images = np.stack([transform.pixels(raw).numpy() for raw in raws[first : first + CHUNK]])
        found.append((hog(images), hog(np.ascontiguousarray(images[..., ::-1]))))
        left = (time.perf_counter() - began) * (len(raws) / len(images) - 1)
        if first == 0 and left > WORTH_SAYING:
            sentence = f"trying whether mirrored copies of {len(raws):,} images help, once: about {left:.0f} s"
            print(sentence, file=sys.stderr, flush=True)
    plain, mirrored = zip(*found, strict=True)
    return np.concatenate(plain), np.concatenate(mirrored)


def answered(features: Features, targets: NDArray[Any], asked: Features) -> NDArray[Any]:
    """What ridge regression on the classes, learnt from features (n, d) and targets (n,), answers to others (m, d)."""
    from sklearn.linear_model import RidgeClassifier

    if len(np.unique(targets)) < 2:
        return np.full(len(asked), targets[0])
    return np.asarray(RidgeClassifier(alpha=1.0).fit(features, targets).predict(asked))
