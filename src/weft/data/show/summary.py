"""What a source holds, as data: splits, class balance, sizes, duplicates across splits, sample rows."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.open.bad_rows import refusal
from weft.data.open.source import Source
from weft.data.open.splits import Split
from weft.data.read.decode import BadImage, decode

CHUNK = 2048  # examples looked at together


@dataclass(frozen=True)
class SplitSummary:
    """One split."""

    origin: str
    rows: int
    balance: dict[str, float]  # class -> rows; for regression least, mean and greatest target
    sizes: str  # of its inputs, in words


@dataclass(frozen=True)
class Summary:
    """All splits, and what they share."""

    splits: dict[str, SplitSummary]
    shared: dict[tuple[str, str], int]  # (split, earlier split) -> rows of the first whose input occurs in the second


def summarize(source: Source) -> Summary:
    """Look at every row: this is also the full check that no file will fail later."""
    looked = {name: _look(split, source) for name, split in source.splits.items()}
    shared: dict[tuple[str, str], int] = {}
    names = list(looked)
    for at, later in enumerate(names):
        for earlier in names[:at]:
            count = int(np.isin(looked[later][1], looked[earlier][1]).sum())
            if count:
                shared[later, earlier] = count
    return Summary({name: summary for name, (summary, _) in looked.items()}, shared)


def samples(source: Source, role: str, count: int) -> list[tuple[Any, Any]]:
    """Raw inputs and targets of some examples spread over a split."""
    split = source.splits[role]
    chosen = np.unique(np.linspace(0, len(split) - 1, count).astype(np.int64))
    inputs, targets = split.read(chosen)
    return list(zip(inputs, targets.tolist(), strict=True))


def target_name(source: Source, target: Any) -> str:
    """A target in words: its class, or its value."""
    if source.classes:
        return source.classes[int(target)]
    return "" if source.task == "none" else f"{float(target):g}"


def _look(split: Split, source: Source) -> tuple[SplitSummary, NDArray[np.uint64]]:
    prints, sizes, targets = [], [], []
    with ThreadPoolExecutor() as pool:
        for chunk, inputs, values in _chunks(split):
            prints += [_print(raw) for raw in inputs]
            sizes += list(pool.map(lambda pair: _size(split, *pair), zip(chunk.tolist(), inputs, strict=True)))
            targets.append(values)
    balance = _balance(np.concatenate(targets), source) if split.labelled else {}
    summary = SplitSummary(split.origin, len(split), balance, _sizes(sizes, source.modality))
    return summary, np.array(prints, dtype=np.uint64)


def _chunks(split: Split) -> Iterator[tuple[NDArray[np.int64], Any, NDArray[Any]]]:
    for start in range(0, len(split), CHUNK):
        chunk = np.arange(start, min(start + CHUNK, len(split)))
        yield chunk, *split.read(chunk)


def _print(raw: Any) -> int:
    data = raw if isinstance(raw, bytes) else raw.tobytes() if isinstance(raw, np.ndarray) else str(raw).encode()
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def _size(split: Split, example: int, raw: Any) -> tuple[int, ...]:
    if isinstance(raw, bytes):
        try:
            return tuple(decode(raw).shape[1:])
        except BadImage as error:
            raise refusal(split.place(example), str(error)) from error
    if isinstance(raw, np.ndarray):
        return raw.shape[-2:]
    return tuple(len(text) for text in ((raw,) if isinstance(raw, str) else raw))


def _sizes(sizes: list[tuple[int, ...]], modality: str) -> str:
    if modality == "vector":
        return f"{sizes[0][-1]} features"
    if modality == "image":
        kinds = set(sizes)
        if len(kinds) == 1:
            return f"{sizes[0][1]} × {sizes[0][0]} px"
        heights, widths = np.array(sizes).T
        return f"{widths.min()}–{widths.max()} × {heights.min()}–{heights.max()} px, {len(kinds)} sizes"
    letters = np.array([sum(size) for size in sizes])
    low, middle, high = np.percentile(letters, [0, 50, 100]).astype(int)
    return f"{low}–{high:,} letters, median {middle}"


def _balance(targets: NDArray[Any], source: Source) -> dict[str, float]:
    if source.classes:
        counts = np.bincount(targets.astype(np.int64), minlength=len(source.classes))
        return dict(zip(source.classes, counts.tolist(), strict=True))
    if source.task == "none":
        return {}
    return {"least": float(targets.min()), "mean": float(targets.mean()), "greatest": float(targets.max())}
