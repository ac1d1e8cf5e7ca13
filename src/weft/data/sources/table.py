"""What every reader returns: tables of raw inputs and labels, whole in memory or block by block.

A raw input is `bytes` (an encoded image), a uint8 array (channels, height, width), a string, a pair of strings, or a
row of floats. A label is an integer, a float or a word; `source.py` decides what it means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.data.config import Modality
from weft.data.open.labels import missing
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
    name: str = ""  # of the split on disk
    skipped: set[int] = field(default_factory=set)  # rows that no split may use

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
    """The file itself, or all files of these endings below a folder; no pipes, whose end may never come."""
    if not path.is_dir():
        return [path]
    found = [file for file in sorted(path.rglob("*")) if file.suffix.lower() in endings and file.is_file()]
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
