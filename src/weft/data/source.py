"""`open_source`: a name or a path becomes a Source with its splits `train`, `select` and `report`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data import noise
from weft.data.bad import Ledger
from weft.data.check import faults_of
from weft.data.config import Modality, SourceConfig, Task
from weft.data.fingerprint import digest
from weft.data.labels import Labels, decide
from weft.data.phrases import text_groups
from weft.data.roles import Roles, assign, carve
from weft.data.sources.find import read
from weft.data.sources.table import Reading, Shards, Table
from weft.data.split import MemorySplit, Split, StreamSplit
from weft.errors import WeftError


@dataclass
class Source:
    """Something readable, opened: what it holds, who gets which rows, and what had to be decided on the way."""

    name: str
    modality: Modality
    task: Task
    classes: list[str]
    splits: dict[str, Split]  # train, select, report, and the source's further splits by their own names
    files: dict[str, str]  # name -> digest of its content
    notes: list[str]
    config: SourceConfig
    columns: list[str] = field(default_factory=list)  # of the features, for vectors

    @property
    def fingerprint(self) -> str:
        """A digest of all that was read: equal for equal content, wherever it lies."""
        return digest(*(part for item in sorted(self.files.items()) for part in item))

    def require(self, fingerprint: str, files: dict[str, str] | None = None) -> None:
        """Refuse to go on with a source that has changed since `fingerprint` (and its `files`) were recorded."""
        if self.fingerprint == fingerprint:
            return
        then = files or {}
        changed = sorted(name for name in then.keys() | self.files.keys() if then.get(name) != self.files.get(name))
        named = f" ({', '.join(changed[:3])}{' and more' if len(changed) > 3 else ''})" if then else ""
        raise WeftError(f"the source {self.name} has changed since the run began{named}; restore it or start a new run")


def open_source(name: str | Path, config: SourceConfig | None = None, **options: Any) -> Source:
    """Open `digits`, a path, or `hub:NAME`; options are those of SourceConfig (seed, target, on_bad, ...)."""
    config = SourceConfig(**options) if config is None else config
    return _Opening(read(str(name), config), str(name), config).source()


class _Opening:
    """One opening of a source: labels decoded, rows checked, roles given."""

    def __init__(self, reading: Reading, name: str, config: SourceConfig) -> None:
        self.reading, self.name, self.config = reading, name, config
        self.ledger = Ledger(config.on_bad)
        self.notes = list(reading.notes)
        self.labels = self._labels()
        self.good: dict[str, NDArray[np.int64]] = {}
        self.targets: dict[str, NDArray[Any]] = {}

    def source(self) -> Source:
        roles = assign(self.reading.tables, self._labelled())
        self.notes += roles.notes
        splits = self._splits(roles)
        if self.labels.classes and len(np.unique(self._sample_targets(splits["train"]))) < 2:
            raise WeftError(f"{self.name} has one class only in its training rows; a classifier needs two")
        return Source(
            name=self.name,
            modality=self.reading.modality,
            task=self.labels.task,
            classes=list(self.labels.classes),
            splits=splits,
            files=self.reading.files,
            notes=self.notes + self.ledger.notes(),
            config=self.config,
            columns=self.reading.columns,
        )

    def _labels(self) -> Labels:
        if self.config.task == "none":
            return Labels("none")
        tables = [table for table in self.reading.tables.values() if _has_labels(table)]
        if not tables:
            return Labels("none")
        if self.reading.names is not None:
            return decide((), 0, self.reading.names, self.config.task)
        values: set[Any] = set()
        for table in tables:
            values |= _distinct(table)
        rows = sum(_rows(table) for table in tables)
        return decide(values, rows, None, self.config.task)

    def _labelled(self) -> list[str]:
        """Splits that can be learnt from: with targets, unless there are none to learn."""
        if self.labels.task == "none":
            return list(self.reading.tables)
        return [name for name, table in self.reading.tables.items() if _has_labels(table)]

    def _splits(self, roles: Roles) -> dict[str, Split]:
        config, tables = self.config, self.reading.tables
        parts: dict[str, Split] = {}
        if isinstance(tables[roles.train], Table):
            parts = self._cut_memory(roles)
        else:
            parts = self._cut_stream(roles)
        if roles.report:
            parts["report"] = self._whole(roles.report)
        else:
            self.notes.append(f"no test split: {config.report:.0%} of the rows were held out by seed {config.seed}")
        ordered = {role: parts[role] for role in ("train", "select", "report")}
        return ordered | {name: self._whole(name) for name in roles.others}

    def _cut_memory(self, roles: Roles) -> dict[str, Split]:
        """Train, select and, where the source has no reporting split, report, out of one table."""
        table = self.reading.tables[roles.train]
        assert isinstance(table, Table)
        rows, targets = self._checked(roles.train, table)
        strata = targets if self.labels.classes else None
        groups = self._groups(table, rows)
        parts: dict[str, Split] = {}
        if roles.report is None:
            held = carve(strata, groups, self.config.report, noise.key(self.config.seed, "report"), len(rows))
            parts["report"] = MemorySplit(table, rows[held], targets[held], f"held out of {roles.train} by seed")
            rows, targets = rows[~held], targets[~held]
            groups = None if groups is None else np.unique(groups[~held], return_inverse=True)[1]
            strata = targets if self.labels.classes else None
        carved = carve(strata, groups, self.config.select, noise.key(self.config.seed, "select"), len(rows))
        by = " by group" if groups is not None else ""
        self.notes.append(f"{carved.sum():,} of {len(rows):,} training rows were carved off for selection{by}")
        parts["train"] = MemorySplit(table, rows[~carved], targets[~carved], f"{roles.train} without select")
        parts["select"] = MemorySplit(table, rows[carved], targets[carved], f"carved from {roles.train}{by}")
        return parts

    def _groups(self, table: Table, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        if table.groups is not None:
            groups: NDArray[np.int64] = np.unique(table.groups[rows].astype(str), return_inverse=True)[1]
            return groups
        if self.reading.modality in {"text", "pair"}:
            return text_groups([table.inputs[row] for row in rows])
        return None

    def _cut_stream(self, roles: Roles) -> dict[str, Split]:
        """The same by a hash of each row's number: nothing needs to be held in memory."""
        raise NotImplementedError

    def _whole(self, name: str) -> Split:
        table = self.reading.tables[name]
        if isinstance(table, Table):
            rows, targets = self._checked(name, table)
            return MemorySplit(table, rows, targets, name)
        return StreamSplit(table, self.labels, lambda rows: np.ones(len(rows), bool), name)

    def _checked(self, name: str, table: Table) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The good rows of a table and their targets; bad ones are entered into the ledger."""
        targets, faults = self.labels.encode(table.labels, len(table))
        faults = {**faults, **faults_of(table, self.reading.modality), **table.faults}
        for row in sorted(faults):
            self.ledger.enter(table.place(row), faults[row])
        rows = np.setdiff1d(np.arange(len(table)), np.array(sorted(faults), dtype=np.int64))
        if len(rows) < 2:
            raise WeftError(f"the split {name!r} of {self.name} has {len(rows)} usable rows; it needs two at least")
        return rows, targets[rows]

    @staticmethod
    def _sample_targets(split: Split) -> NDArray[Any]:
        return split.targets if isinstance(split, MemorySplit) else np.arange(2)


def _rows(table: Table | Shards) -> int:
    return len(table) if isinstance(table, Table) else int(table.rows.sum())


def _distinct(table: Table | Shards) -> set[Any]:
    if isinstance(table, Table):
        return set() if table.labels is None else set(table.labels.tolist())
    raise NotImplementedError


def _has_labels(table: Table | Shards) -> bool:
    """Whether a split has targets; GLUE's hidden test labels are all -1."""
    if isinstance(table, Table):
        labels = table.labels
        return labels is not None and len(labels) > 0 and not (labels.dtype.kind in "if" and bool((labels == -1).all()))
    return table.block(0).labels is not None
