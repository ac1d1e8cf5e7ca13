"""What every reader returns: tables of raw inputs and labels, whole in memory or block by block; and their bad rows.

A raw input is `bytes` (an encoded image), a uint8 array (channels, height, width), a string, a pair of strings, or a
row of floats. A label is an integer, a float or a word; `data/open/` decides what it means.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.data.config import Modality, OnBad
from weft.disk import data_files
from weft.errors import WeftError

Inputs = Sequence[Any] | NDArray[Any]


@dataclass
class Table:
    """One split as it lies on disk, its rows at hand."""

    inputs: Inputs  # encoded images may be read from disk only when they are indexed
    labels: NDArray[Any] | None
    place: Callable[[int], str]  # row -> "train.parquet row 17", for sentences about bad rows
    groups: NDArray[Any] | None = None  # rows with equal values must not be parted
    faults: dict[int, str] = field(default_factory=dict)  # row -> what the reader found wrong with it
    prints: list[str | None] | None = None  # equal for equal inputs, where the reader has them at hand
    name: str = ""  # of the split on disk
    skipped: set[int] = field(default_factory=set)  # rows that no split may use
    stores: dict[str, Any] = field(default_factory=dict, repr=False)  # what cuts of the rows share: pixels, features

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def labelled(self) -> bool:
        """Whether there are targets; hidden ones, as of GLUE's test splits, are all -1 or all missing."""
        labels = self.labels
        if labels is None or len(labels) == 0 or (labels.dtype.kind in "if" and bool((labels == -1).all())):
            return False
        return labels.dtype.kind in "iu" or any(not missing(value) for value in labels.tolist())

    def label_values(self) -> set[Any]:
        """The distinct raw labels."""
        return set() if self.labels is None else set(self.labels.tolist())


@dataclass
class Block:
    """A run of rows of a streamed split; faults count from the block's first row."""

    inputs: Inputs
    labels: NDArray[Any] | None
    faults: dict[int, str] = field(default_factory=dict)


class Shards(Protocol):
    """One split too large for memory: a list of blocks, each readable without those before it."""

    rows: NDArray[np.int64]  # of each block
    labelled: bool

    def __len__(self) -> int: ...

    def label_values(self) -> set[Any]: ...

    def block(self, number: int) -> Block: ...

    def place(self, row: int) -> str: ...


@dataclass
class Reading:
    """A whole source as a reader found it."""

    modality: Modality
    tables: dict[str, Table | Shards]  # by the name of the split on disk
    files: dict[str, str]  # name -> digest of what was read: a change in any is a change of the source
    names: list[str] | None = None  # class names, where the source states them
    columns: list[str] = field(default_factory=list)  # that the input is read from, where they have names
    notes: list[str] = field(default_factory=list)
    target: str | None = None  # the column of the labels
    spare: tuple[str, ...] = ()  # columns that are used for nothing


def join(shards: Shards) -> Table:
    """All blocks in memory."""
    blocks = [shards.block(number) for number in range(len(shards.rows))]
    starts = np.cumsum([0, *shards.rows])
    labelled = bool(blocks) and all(block.labels is not None for block in blocks)
    inputs: Inputs
    if blocks and isinstance(blocks[0].inputs, np.ndarray):
        inputs = np.concatenate([np.asarray(block.inputs) for block in blocks])
    else:
        inputs = [value for block in blocks for value in block.inputs]
    return Table(
        inputs=inputs,
        labels=np.concatenate([np.asarray(block.labels) for block in blocks]) if labelled else None,
        place=shards.place,
        faults={int(starts[n]) + row: why for n, block in enumerate(blocks) for row, why in block.faults.items()},
    )


# ---- Raw labels, and whether there is one.

MISSING = {"", "na", "n/a", "nan", "null", "none", "nil", "<na>", "#n/a", "#na"}
"""What people and programs write, in capitals or not, where a label is missing: pandas' words for it."""


def missing(value: Any) -> bool:
    """Whether a raw label says that there is none."""
    return word(value).casefold() in MISSING


def word(value: Any) -> str:
    """A raw label as the name of its class: 3, 3.0 and "3" are one. Nothing, and what is no number, has no name."""
    if value is None or value != value:
        return ""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip().removeprefix("\ufeff")  # which marks the beginning of a file that was put behind another


def as_number(value: Any) -> float:
    """A raw label as a number; NaN where it is none."""
    if isinstance(value, str) and "_" in value:  # which Python reads as 1_000
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


# ---- Which files are of one split.

_SHARD = re.compile(r"[-_.]?\d+([-_]of[-_]\d+)?$")
_SPLIT = re.compile(r"(train|test|t10k|val|dev|eval|unsupervised|unlabell?ed)", re.IGNORECASE)


def is_split(name: str) -> bool:
    """Whether a file or folder is named as splits are."""
    return _SPLIT.match(name) is not None


def leading(splits: dict[str, list[Path]]) -> Path:
    """The file from which the meaning of columns is read: the first of the training split, where there is one."""
    order = sorted(splits, key=lambda name: not name.lower().startswith("train"))
    return splits[order[0]][0]


def regular_files(path: Path, *endings: str) -> list[Path]:
    """The file itself, or all files of these endings below a folder but those that weft wrote; no pipes, whose end may
    never come."""
    if not path.is_dir():
        return [path]
    found = [file for file in data_files(path) if file.suffix.lower() in endings and file.is_file()]
    if not found:
        raise WeftError(
            f"{path} holds no regular file ({', '.join(endings)}), only pipes, folders or broken links; give files"
        )
    return found


def split_names(files: Sequence[Path], root: Path) -> dict[str, list[Path]]:
    """Split -> its files: `train.parquet`, `train-00000-of-00002.parquet` and `train/0000.parquet` are all train."""
    splits: dict[str, list[Path]] = {}
    for file in files:
        stem = _SHARD.sub("", file.name.split(".")[0])
        folder = file.parent.name if file.parent != root else ""
        splits.setdefault(folder if is_split(folder) and not is_split(stem) else stem, []).append(file)
    if not any(is_split(name) for name in splits):
        return {"all": list(files)}
    return splits


# ---- Bad rows: what can be wrong with one, told before it reaches a batch, and what is done with it: to stop at the
# first with a sentence, or to leave them out, counted and reported.

_SHOWN = 5


def refusal(place: str, why: str) -> WeftError:
    """The sentence about a bad row that stops the work."""
    return WeftError(f"{place}: {why}; repair or remove it, or leave bad rows out with --on-bad skip")


@dataclass
class Ledger:
    """The bad rows of a source, each as a sentence naming file and row."""

    on_bad: OnBad
    found: list[tuple[str, str]] = field(default_factory=list)  # place, what is wrong

    @property
    def sentences(self) -> list[str]:
        return [f"{place}: {why}" for place, why in self.found]

    def enter(self, place: str, why: str) -> None:
        """Record a bad row, or refuse the source because of it."""
        if self.on_bad == "fail":
            raise refusal(place, why)
        self.found.append((place, why))

    def notes(self) -> list[str]:
        """What the record says about skipped rows: how many, and the first few by name."""
        if not self.sentences:
            return []
        more = len(self.sentences) - _SHOWN
        shown = "; ".join(self.sentences[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        rows = "1 bad row was" if len(self.sentences) == 1 else f"{len(self.sentences)} bad rows were"
        return [f"{rows} skipped: {shown}"]


class LabelCode(Protocol):
    """What raw labels mean, as `data/open/labels.py` decides it."""

    def encode(self, raw: NDArray[Any] | None, rows: int) -> tuple[NDArray[Any], dict[int, str]]:
        """(rows,) targets, and row -> why its label is bad."""


LONGEST = 1_000_000
"""Characters of a text. A longer one is a file that slipped into a column, and would stall the tokeniser."""


def examine(
    table: Table | Block, labels: LabelCode, modality: Modality, images: bool = False
) -> tuple[NDArray[Any], dict[int, str]]:
    """Targets of the rows, and row -> what is wrong with it. Images are decoded for it only if `images` says so."""
    targets, faults = labels.encode(table.labels, len(table.inputs))
    if modality == "vector":
        faults |= _vector_faults(np.asarray(table.inputs))
    elif modality in {"text", "pair"}:
        faults |= _text_faults(table.inputs)
    elif images:
        faults |= _image_faults(table.inputs, set(table.faults))
    return targets, faults | table.faults


def blank_rows(texts: Inputs) -> set[int]:
    """Rows with nothing but white space."""
    return {row for row, text in enumerate(texts) if not text.strip()}


def _vector_faults(rows: NDArray[Any]) -> dict[int, str]:
    bad = ~np.isfinite(rows)
    return {
        int(row): f"feature {int(np.flatnonzero(bad[row])[0])} is not a finite number ({rows[row][bad[row]][0]})"
        for row in np.flatnonzero(bad.any(axis=1))
    }


def _text_faults(texts: Inputs) -> dict[int, str]:
    faults = {}
    for row, value in enumerate(texts):
        for text in (value,) if isinstance(value, str) else value:
            if not text.strip():
                faults[row] = "the text is empty"
            elif len(text) > LONGEST:
                faults[row] = f"the text has {len(text):,} characters, more than the limit of {LONGEST:,}"
    return faults


def _image_faults(images: Inputs, known: set[int]) -> dict[int, str]:
    """Images that cannot be decoded, but for `known` rows, which may not even be files."""
    if len(images) == 0 or not isinstance(images, Sequence):
        return {}  # arrays: nothing to decode
    from weft.data.read.decode import BadImage, decode  # loads torch, which no reader needs

    def fault(row: int) -> str | None:
        try:
            decode(images[row])
        except BadImage as error:
            return str(error)
        return None

    with ThreadPoolExecutor() as pool:
        rows = [row for row in range(len(images)) if row not in known]
        return {row: why for row, why in zip(rows, pool.map(fault, rows), strict=True) if why}
