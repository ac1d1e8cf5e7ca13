"""Rows to look at twice: near-duplicate pictures across splits, and labels that those of like rows contradict.

A picture's difference hash (64 bits: is each of 8 × 8 places of a small grey copy brighter than its right neighbour?)
finds candidates; a grey copy of 16 × 16 confirms them, since plain or tiny pictures have alike hashes by luck.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate

NEAR_BITS = 6  # bits of two hashes that may differ
NEAR_LEVELS = 4.0  # mean difference of two grey copies, of 255
PAIRS = 4_000_000_000  # comparisons of hashes; more would take minutes
NEIGHBOURS = 5
TELLING = 0.7  # share of rows whose like rows have their label, from which on a contradiction says something
ROWS = 6000  # rows whose neighbours are looked for

Thumbnails = NDArray[np.uint8]  # (n, 256)


def small_copies(images: list[Tensor]) -> list[tuple[int, NDArray[np.uint8]]]:
    """The difference hash and the grey copy of images (channels, height, width) uint8, those of one size together."""
    found: dict[int, tuple[int, NDArray[np.uint8]]] = {}
    for numbers in by_size(images):
        grey = torch.stack([images[number][:3] for number in numbers]).float().mean(1, keepdim=True)
        pairs = zip(difference_hashes(grey), thumbnails(grey), strict=True)
        found |= dict(zip(numbers, pairs, strict=True))
    return [found[number] for number in range(len(images))]


def by_size(images: list[Tensor]) -> list[list[int]]:
    """The numbers of the images of each size."""
    groups = defaultdict(list)
    for number, image in enumerate(images):
        groups[image.shape].append(number)
    return list(groups.values())


def thumbnails(grey: Tensor) -> Thumbnails:
    """Grey levels of images (n, 1, height, width)."""
    return interpolate(grey, size=(16, 16), mode="area").round().to(torch.uint8).flatten(1).numpy()


def difference_hashes(grey: Tensor) -> list[int]:
    """64 bits each that change little where a picture was scaled, compressed or brightened."""
    small = interpolate(grey, size=(8, 9), mode="area")[:, 0]
    bits = (small[:, :, 1:] > small[:, :, :-1] + 0.5).flatten(1).numpy()
    return [int.from_bytes(line.tobytes(), "little") for line in np.packbits(bits, axis=1)]


@dataclass(frozen=True)
class Looks:
    """How the pictures of a split look."""

    hashes: NDArray[np.uint64]
    thumbnails: Thumbnails


def near_duplicates(later: Looks, earlier: Looks) -> list[tuple[int, int]] | None:
    """(picture of `later`, the like picture of `earlier`) pairs; None where there are too many to compare."""
    if len(later.hashes) * len(earlier.hashes) > PAIRS:
        return None
    found = []
    for start in range(0, len(later.hashes), 256):
        part = later.hashes[start : start + 256]
        near = np.bitwise_count(part[:, None] ^ earlier.hashes[None]) <= NEAR_BITS
        for row in np.flatnonzero(near.any(1)):
            others = np.flatnonzero(near[row])
            own = later.thumbnails[start + row].astype(np.int16)
            apart = np.abs(earlier.thumbnails[others] - own).mean(1)
            if apart.min() <= NEAR_LEVELS:
                found.append((start + int(row), int(others[apart.argmin()])))
    return found


def contradictions(prints: NDArray[np.uint64], targets: NDArray[Any]) -> list[list[int]]:
    """Groups of rows with one and the same input and more than one label."""
    order = np.argsort(prints, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(prints[order])) + 1)
    return [group.tolist() for group in groups if len(group) > 1 and len(set(targets[group].tolist())) > 1]


def odd_labels(features: Any, targets: NDArray[Any]) -> list[tuple[int, Any]]:
    """(row, label of its neighbours) where all nearest rows have one other label; none where neighbours tell little.

    Of a class with no more rows than neighbours are asked nothing is said: however alike, they cannot be among
    themselves.
    """
    from sklearn.neighbors import NearestNeighbors

    if len(targets) <= 2 * NEIGHBOURS:
        return []
    search = NearestNeighbors(n_neighbors=NEIGHBOURS + 1, algorithm="brute", metric="cosine").fit(features)
    near = search.kneighbors(features, return_distance=False)
    labels = np.array([targets[row[row != own][:NEIGHBOURS]] for own, row in enumerate(near)])
    votes = [Counter(line.tolist()).most_common(1)[0] for line in labels]
    if np.mean([label == own for (label, _), own in zip(votes, targets.tolist(), strict=True)]) < TELLING:
        return []
    rows_of = Counter(targets.tolist())
    return [
        (row, label)
        for row, ((label, count), own) in enumerate(zip(votes, targets.tolist(), strict=True))
        if label != own and count == NEIGHBOURS and rows_of[own] > NEIGHBOURS
    ]


def text_features(texts: list[str]) -> Any:
    """TF-IDF of texts, (n, words)."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        return TfidfVectorizer(min_df=2, max_df=0.5, sublinear_tf=True, max_features=20_000).fit_transform(texts)
    except ValueError:  # no word occurs twice
        return None
