"""What a source holds, as data: splits, class balance, sizes, duplicates across splits, sample rows."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.config import TransformConfig
from weft.data.open.labels import uneven
from weft.data.open.source import Source
from weft.data.open.splits import Split, spread
from weft.data.read.decode import BadImage, decode
from weft.data.show.cautions import fingerprint
from weft.data.show.suspicions import (
    ROWS,
    Looks,
    contradictions,
    near_duplicates,
    odd_labels,
    small_copies,
    text_features,
)
from weft.data.sources.table import refusal
from weft.data.transform.fit import LARGE, SMALL, fit
from weft.data.transform.transforms import TextTransform
from weft.terminal import how_many

CHUNK, GROUP = 2048, 16  # examples that are read, and that a thread looks at, together
SAMPLE = 2000  # texts whose tokens are counted
FEW = 5  # rows named in a sentence
BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class SplitSummary:
    """One split."""

    origin: str
    rows: int
    balance: dict[str, float]  # class -> rows; for regression least, mean and greatest target
    sizes: str  # of its inputs, in words
    picture: str  # their distribution, as a row of bars


@dataclass(frozen=True)
class Measure:
    """A size of the training inputs: what it is, its values, and the one that a run with no settings would take."""

    title: str
    values: list[int]
    mark: int
    marked: str  # what `mark` is


@dataclass(frozen=True)
class Summary:
    """All splits, and what they share."""

    splits: dict[str, SplitSummary]
    shared: dict[tuple[str, str], int]  # (split, earlier split) -> rows of the first whose input occurs in the second
    warnings: list[str]  # near-duplicates, labels to look at twice, what would be cut or resized
    measures: list[Measure]

    def shared_notes(self) -> list[str]:
        """The rows that two splits share, in sentences."""
        return [
            f"{how_many(count, 'row')} of {later} {'occurs' if count == 1 else 'occur'} in {earlier} as well"
            for (later, earlier), count in self.shared.items()
        ]


@dataclass(frozen=True)
class Look:
    """What was seen of a split's rows."""

    sizes: list[tuple[int, ...]]
    prints: NDArray[np.uint64]  # equal for equal inputs
    targets: NDArray[Any]
    looks: Looks | None  # of pictures


def summarize(source: Source) -> Summary:
    """Look at every row: this is also the full check that no file will fail later."""
    looked = {name: _look(split) for name, split in source.splits.items()}
    shared: dict[tuple[str, str], int] = {}
    measures = measured(source, looked)
    warnings = [*unfit(source, measures), *uneven(source)]
    names = list(looked)
    for at, later in enumerate(names):
        for earlier in names[:at]:
            same = np.isin(looked[later].prints, looked[earlier].prints)
            if same.any():
                shared[later, earlier] = int(same.sum())
            warnings += near_duplicate_note(source, looked, later, earlier, same)
    if source.classes:
        warnings += label_notes(source, {n: look for n, look in looked.items() if source.splits[n].labelled})
    splits = {
        name: SplitSummary(
            split.origin,
            len(split),
            _balance(looked[name].targets, source) if split.labelled else {},
            _sizes(looked[name].sizes, source.modality),
            bars([sum(size) if source.modality in {"text", "pair"} else min(size) for size in looked[name].sizes]),
        )
        for name, split in source.splits.items()
    }
    return Summary(splits, shared, warnings, measures)


def measured(source: Source, looked: dict[str, Look]) -> list[Measure]:
    """Widths and heights of training pictures, or tokens of training texts; nothing of vectors."""
    train = source.splits["train"]
    if source.modality == "image":
        side = fit(source, TransformConfig(normalize="unit")).size  # type: ignore[union-attr]
        heights, widths = np.array(looked["train"].sizes).T.tolist()
        taken = "the side that pictures are resized to"
        return [Measure("width, px", widths, side, taken), Measure("height, px", heights, side, taken)]
    if source.modality == "vector":
        return []
    transform = fit(source)
    assert isinstance(transform, TextTransform)
    texts = list(train.read(spread(len(train), SAMPLE))[0])
    lengths = [len(ids) for ids, _ in transform.tokenizer.encode(texts, 1 << 20)]
    return [Measure("tokens", lengths, transform.max_length, "the length that texts are cut to")]


def unfit(source: Source, measures: list[Measure]) -> Iterator[str]:
    """What a run with default settings would do to inputs that do not fit: pictures are resized, texts are cut."""
    if source.modality == "image":
        widths, heights = (measure.values for measure in measures)
        side = measures[0].mark
        if other := sum(size != (side, side) for size in zip(widths, heights, strict=True)):
            are = f"{other:,} of {len(widths):,} training pictures are not {side} × {side}"
            yield f"{are} and would be resized; --img-size sets another side"
        if side > SMALL:
            yield (
                f"a network that is named gets pictures of {side} px; the one that `weft train` chooses itself gets "
                f"{SMALL} px, or {min(side, LARGE)} px in runs of twenty minutes; --img-size sets another side"
            )
    for measure in measures if source.modality in {"text", "pair"} else ():
        if longer := sum(length > measure.mark for length in measure.values):
            share, whole = longer / len(measure.values), int(np.quantile(measure.values, 0.95))
            yield (
                f"{share:.0%} of the training texts are longer than {measure.mark} tokens and would be cut; "
                f"--max-length {whole} keeps 95 % of them whole"
            )


def near_duplicate_note(
    source: Source, looked: dict[str, Look], later: str, earlier: str, same: NDArray[np.bool_]
) -> Iterator[str]:
    """Pictures of a split that are nearly those of another, those that are the same not counted."""
    mine, theirs = looked[later].looks, looked[earlier].looks
    if mine is None or theirs is None:
        return
    pairs = near_duplicates(mine, theirs)
    if pairs is None:
        yield (
            f"{later} and {earlier} have too many pictures to look for near-duplicates: show a folder with some of "
            "them to have these looked at"
        )
        return
    pairs = [(a, b) for a, b in pairs if not same[a]]
    if pairs:
        a, b = pairs[0]
        places = f"{source.splits[later].place(a)} and {source.splits[earlier].place(b)}"
        are = f"{how_many(len(pairs), 'picture')} of {later} {'is' if len(pairs) == 1 else 'are'}"
        yield f"{are} nearly the same as pictures of {earlier}, such as {places}"


def label_notes(source: Source, looked: dict[str, Look]) -> Iterator[str]:
    """Equal inputs with different labels, and rows whose nearest rows, of all splits, have another label."""

    def called(name: str, row: int) -> str:
        return f"{source.splits[name].place(row)} ({target_name(source, looked[name].targets[row])})"

    for name, look in looked.items():
        if groups := contradictions(look.prints, look.targets):
            places = " and ".join(called(name, row) for row in groups[0][:2])
            count = sum(map(len, groups))
            yield f"{count:,} rows of {name} have the same input and different labels, such as {places}"
    for name, odd in odd_rows(source, looked).items():
        listed = [f"{called(name, row)}, among {target_name(source, label)}" for row, label in odd[:FEW]]
        more = f" and {len(odd) - FEW} more" if len(odd) > FEW else ""
        labels = how_many(len(odd), "label")
        yield f"{labels} of {name} to look at, as all like rows have another: {'; '.join(listed)}{more}"


def odd_rows(source: Source, looked: dict[str, Look]) -> dict[str, list[tuple[int, Any]]]:
    """By split, the rows whose label those of like rows contradict, and the label of these.

    Neighbours are looked for in all splits together: in a small one a rare class has too few rows to be its own.
    """
    starts = np.cumsum([0, *(len(look.targets) for look in looked.values())])
    picked = spread(int(starts[-1]), ROWS)
    pairs = zip(looked, starts, starts[1:], strict=False)
    chosen = {name: picked[(picked >= start) & (picked < end)] - start for name, start, end in pairs}
    where = [(name, int(row)) for name, rows in chosen.items() for row in rows]
    features = features_of(source, looked, chosen)
    targets = np.concatenate([looked[name].targets[rows] for name, rows in chosen.items()])
    found: dict[str, list[tuple[int, Any]]] = {}
    for number, label in odd_labels(features, targets) if features is not None else ():
        name, row = where[number]
        found.setdefault(name, []).append((row, label))
    return found


def features_of(source: Source, looked: dict[str, Look], chosen: dict[str, NDArray[np.int64]]) -> Any:
    """What tells whether the chosen rows of splits are alike, (n, features); None where nothing does."""
    copies = [look.looks.thumbnails[chosen[name]] for name, look in looked.items() if look.looks is not None]
    if copies:
        small = np.concatenate(copies).astype(np.float32)
        return small - small.mean(1, keepdims=True) + 1e-3
    raws = [raw for name, rows in chosen.items() for raw in source.splits[name].read(rows)[0]]
    if source.modality == "vector":
        rows = np.asarray(raws, dtype=np.float64)
        return (rows - rows.mean(0)) / (rows.std(0) + 1e-12) + 1e-9
    return text_features([raw if isinstance(raw, str) else " ".join(raw) for raw in raws])


def bars(values: list[int], places: int = 16) -> str:
    """A distribution as a row of bars; empty where all values are one."""
    if len(set(values)) < 2:
        return ""
    edges = np.quantile(values, [0.0, 0.99])
    counts = np.histogram(np.clip(values, *edges), places, (float(edges[0]), float(max(edges[1], edges[0] + 1))))[0]
    heights = np.ceil(counts / counts.max() * len(BARS)).astype(int)
    return "".join(" " if height == 0 else BARS[height - 1] for height in heights)


def samples(source: Source, role: str, count: int) -> list[tuple[Any, Any]]:
    """Raw inputs and targets of some examples spread over a split."""
    split = source.splits[role]
    chosen = spread(len(split), count)
    inputs, targets = split.read(chosen)
    return list(zip(inputs, targets.tolist(), strict=True))


def target_name(source: Source, target: Any) -> str:
    """A target in words: its class, or its value."""
    if source.classes:
        return source.classes[int(target)]
    return "" if source.task == "none" else f"{float(target):g}"


def _look(split: Split) -> Look:
    prints, seen, targets = [], [], []
    with ThreadPoolExecutor() as pool:
        for chunk, inputs, values in _chunks(split):
            prints += [fingerprint(raw) for raw in inputs]
            pairs = list(zip(chunk.tolist(), inputs, strict=True))
            groups = [pairs[start : start + GROUP] for start in range(0, len(pairs), GROUP)]
            seen += [each for found in pool.map(partial(_seen, split), groups) for each in found]
            targets.append(values)
    looks = None
    if seen and seen[0][1] is not None:
        looks = Looks(np.array([s[1][0] for s in seen], np.uint64), np.stack([s[1][1] for s in seen]))
    return Look([size for size, _ in seen], np.array(prints, dtype=np.uint64), np.concatenate(targets), looks)


def _chunks(split: Split) -> Iterator[tuple[NDArray[np.int64], Any, NDArray[Any]]]:
    for start in range(0, len(split), CHUNK):
        chunk = np.arange(start, min(start + CHUNK, len(split)))
        yield chunk, *split.read(chunk)


def _seen(split: Split, rows: list[tuple[int, Any]]) -> list[tuple[tuple[int, ...], Any]]:
    """The size of each input, by its number, and of a picture its hash and thumbnail."""
    kind = rows[0][1]
    if isinstance(kind, np.ndarray) and kind.ndim < 3:
        return [(raw.shape[-2:], None) for _, raw in rows]
    if not isinstance(kind, bytes | np.ndarray):
        return [(tuple(len(text) for text in ((raw,) if isinstance(raw, str) else raw)), None) for _, raw in rows]
    images = [_image(split, *row) for row in rows]
    return [(tuple(image.shape[1:]), copy) for image, copy in zip(images, small_copies(images), strict=True)]


def _image(split: Split, example: int, raw: Any) -> Tensor:
    try:
        return decode(raw) if isinstance(raw, bytes) else torch.as_tensor(raw)
    except BadImage as error:
        raise refusal(split.place(example), str(error)) from error


def _sizes(sizes: list[tuple[int, ...]], modality: str) -> str:
    if modality == "vector":
        return how_many(sizes[0][-1], "feature")
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
