"""`open_source`: a name or a path becomes a Source with its splits `train`, `validation` and `test`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.batch import noise
from weft.data.config import Modality, SourceConfig, Task
from weft.data.open.groups import equal_groups, equal_images, sentence_cut, text_groups
from weft.data.open.labels import Labels, decide, is_padded, look_alikes
from weft.data.open.splits import MemorySplit, Roles, Split, StreamSplit, assign, draw_rows, stream_cut
from weft.data.read.cache import digest
from weft.data.sources.find import read
from weft.data.sources.table import Ledger, Reading, Shards, Table, as_number, blank_rows, examine, word
from weft.errors import WeftError
from weft.terminal import whole

ROLES = ("train", "validation", "test")


@dataclass
class Source:
    """Something readable, opened: what it holds, who gets which rows, and what had to be decided on the way."""

    name: str
    modality: Modality
    task: Task
    classes: list[str]
    splits: dict[str, Split]  # train, validation, test, and the source's further splits by their own names
    files: dict[str, str]  # name -> digest of its content
    notes: list[str]
    config: SourceConfig
    columns: list[str] = field(default_factory=list)  # that the input is read from; empty where files have none
    stores: dict[str, Any] = field(default_factory=dict, repr=False)  # token ids in use; tables hold what cuts share
    held_out: bool = False  # whether the test rows were cut off by seed, for want of a split of their own
    target: str | None = None  # the column of the labels
    spare: tuple[str, ...] = ()  # columns that are used for nothing
    bad: list[tuple[str, str]] = field(default_factory=list)  # rows that were left out: place, and why
    whole: dict[str, int] = field(default_factory=dict)  # rows of splits of which fewer were asked for

    @property
    def fingerprint(self) -> str:
        """A digest of all that was read: equal for equal content, wherever it lies."""
        return digest(*(part for item in sorted(self.files.items()) for part in item))

    def count(self, role: str) -> int:
        """The rows of a split."""
        return len(self.splits[role])

    def require(self, fingerprint: str, files: dict[str, str] | None = None) -> None:
        """Refuse to go on with a source that has changed since `fingerprint` (and its `files`) were recorded."""
        if self.fingerprint == fingerprint:
            return
        then = files or {}
        changed = sorted(name for name in then.keys() | self.files.keys() if then.get(name) != self.files.get(name))
        named = f" ({', '.join(changed[:3])}{' and more' if len(changed) > 3 else ''})" if then else ""
        raise WeftError(f"the source {self.name} has changed since the run began{named}; restore it or start a new run")


def open_source(
    name: str | Path, config: SourceConfig | None = None, *, test_split: str | None = None, **options: Any
) -> Source:
    """Open `digits`, a path, or `hub:NAME`; options are those of SourceConfig (split_seed, target, on_bad, ...).

    `test_split` names the split on disk for the final figures, where it is not the one called test.
    """
    config = SourceConfig(**options) if config is None else config
    return cut_source(read(str(name), config), str(name), config, test_split)


def cut_source(reading: Reading, name: str, config: SourceConfig, test_split: str | None = None) -> Source:
    """What was read of a source, its rows cut into splits as `config` says; several cuts share the rows."""
    opening = Opening(reading, name, config)
    return opening.source(opening.cut(test_split))


def open_for(name: str, config: SourceConfig, modality: Modality, labels: Labels) -> Source:
    """Open a source for a network of this `modality` that knows its `labels`: all rows, by the splits on disk.

    One class, or one row, is enough, and nothing is held out. The split `test` is there if the source has one.
    """
    reading = read(name, config)
    if reading.modality != modality:
        raise WeftError(f"the network takes {modality}, {name} holds {reading.modality}; give a source of its kind")
    if labels.classes:
        counted = () if reading.names is None else tuple(whole(name) for name in reading.names)
        numbers = all(as_number(name) == as_number(name) for name in labels.classes)  # then integers are names
        labels = replace(labels, spelt=counted, numbered=not counted and not numbers)
    opening = Opening(reading, name, config, labels)
    return opening.source(opening.as_stored())


def open_unlabelled(name: str, config: SourceConfig, modality: Modality) -> Source:
    """Open a source for its rows alone, by the splits on disk; labels that it may have are not looked at."""
    reading = read(name, config)
    if reading.modality != modality:
        raise WeftError(f"{name} holds {reading.modality}, where {modality} is needed; give a source of that kind")
    opening = Opening(reading, name, config, Labels("none"))
    return opening.source(opening.as_stored())


# ---- How a reading becomes a source: labels get their code, rows are checked, roles are given.

Index = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Opening:
    """One opening of a source: after `cut` or `as_stored`, `splits`, `labels` and `notes` are what it found."""

    def __init__(self, reading: Reading, name: str, config: SourceConfig, known: Labels | None = None) -> None:
        self.reading, self.name, self.config = reading, name, config
        self.ledger = Ledger(config.on_bad)
        self.notes = list(reading.notes)
        self.least = 2 if known is None else 1  # rows that a split must have
        self.labels = known or self._labels()
        self.splits: dict[str, Split] = {}
        self.emptied: dict[str, int] = {}  # class -> its rows, where all of them are bad
        self.equals: Index | None = None  # (rows of the table that is cut,) the first row with the same image

    def cut(self, test: str | None = None) -> bool:
        """Give the rows their roles, `test` to the split of that name; returns whether test rows had to be held out."""
        roles = assign(self.reading.tables, self._labelled(), test)
        self.notes += roles.notes
        self.splits = self._splits(roles)
        self.notes += [*self._about_labels(), *self._about_columns(), *self.ledger.notes()]
        return roles.test is None

    def as_stored(self) -> bool:
        """Every split with labels under its own name, whole."""
        named = self._labelled()
        if not named:
            raise WeftError(f"{self.name} has no labels to compare answers with; use `weft predict` for its rows")
        self.splits = {name: self._whole(name) for name in named}
        self.notes += [*self._about_columns(), *self.ledger.notes()]
        return False

    def source(self, held_out: bool) -> Source:
        """What came out."""
        return Source(
            name=self.name,
            modality=self.reading.modality,
            task=self.labels.task,
            classes=[whole(name) for name in self.labels.classes],
            splits=self.splits,
            files={whole(file): content for file, content in self.reading.files.items()},
            notes=[whole(note) for note in self.notes],
            config=self.config,
            columns=self.reading.columns,
            held_out=held_out,
            target=self.reading.target,
            spare=self.reading.spare,
            bad=[(whole(place), whole(why)) for place, why in self.ledger.found],
        )

    def _labels(self) -> Labels:
        tables = [table for table in self.reading.tables.values() if table.labelled]
        if self.config.task == "none" or not tables:
            return Labels("none")
        if self.reading.names is not None:
            if len(self.reading.names) == 1:
                only = f"{self.name} has one class only, {self.reading.names[0]!r}"
                raise WeftError(f"{only}; a classifier needs two, or use --task none")
            return decide((), 0, self.reading.names, self.config.task)
        values = set().union(*(table.label_values() for table in tables))
        return decide(values, sum(len(table) for table in tables), None, self.config.task)

    def _about_labels(self) -> Iterator[str]:
        """What was made of the labels that might not be what was meant."""
        if self.labels.note:
            yield self.labels.note
        if self.labels.classes == ("-1", "0", "1"):
            yield "the label -1 is a class of its own here; if it marks missing labels, remove these rows"
        if self.labels.task == "none" and self.config.task != "none":
            for name, table in self.reading.tables.items():
                if isinstance(table, Table) and table.labels is not None:
                    yield f"no row of {name!r} has a label"
            if self.reading.target is None and self.reading.spare:
                yield f"no column is taken for the label; --target names one: {', '.join(self.reading.spare)}"
        rows = self._rows_of_classes()
        for names in look_alikes(self.labels.classes):
            counted = " and ".join(f"{name!r} ({rows[name]:,} rows)" if name in rows else repr(name) for name in names)
            yield f"the classes {counted} differ in case or blanks alone; write them alike if they are one"
        if padded := [repr(name) for name in self.labels.padded]:
            more = f" and {len(padded) - 3} more" if len(padded) > 3 else ""
            count = self._padded_rows()
            yield f"{count:,} labels of {', '.join(padded[:3])}{more} have blanks around them, which were taken off"
        for name in self.emptied.keys() - {name for name, count in rows.items() if count}:
            count = self.emptied[name]
            yield f"all {count:,} rows of the class {name!r} are bad and left out: it cannot be learnt"
        if single := [repr(name) for name, count in rows.items() if count == 1]:
            more = f" and {len(single) - 3} more" if len(single) > 3 else ""
            yield f"of {', '.join(single[:3])}{more} there is one row only, too few to learn a class from"

    def _about_columns(self) -> Iterator[str]:
        """Flags that choose columns where there are none."""
        for flag, wish in {"--target": self.config.target, "--inputs": self.config.inputs}.items():
            if wish is not None and not self.reading.columns:
                given = wish if isinstance(wish, str) else " ".join(wish)
                yield f"{flag} {given} was not used: {self.name} has no columns"

    def _rows_of_classes(self) -> dict[str, int]:
        """Class -> rows in all splits; nothing of a streamed source, whose labels would have to be read again."""
        splits = [split for split in self.splits.values() if split.labelled]
        if not self.labels.classes or not all(isinstance(split, MemorySplit) for split in splits):
            return {}
        counts = np.bincount(np.concatenate([split.targets for split in splits]).astype(np.int64))
        return dict(zip(self.labels.classes, counts.tolist(), strict=False))

    def _padded_rows(self) -> int:
        """Rows whose label has blanks around it; of a streamed source the different labels that have."""
        raw = [table.labels.tolist() if isinstance(table, Table) and table.labels is not None else table.label_values()
               for table in self.reading.tables.values() if table.labelled]  # fmt: skip
        return sum(is_padded(label) and word(label) in self.labels.padded for labels in raw for label in labels)

    def _labelled(self) -> list[str]:
        """Splits that can be learnt from: those with targets, or all where there is no target."""
        every = self.labels.task == "none"
        return [name for name, table in self.reading.tables.items() if every or table.labelled]

    def _splits(self, roles: Roles) -> dict[str, Split]:
        table = self.reading.tables[roles.train]
        self._require_folds(roles, table)
        parts = self._cut_memory(roles, table) if isinstance(table, Table) else self._cut_stream(roles, table)
        if roles.validation:
            parts["validation"] = self._whole(roles.validation)
            self.notes.append(f"{roles.validation!r} serves for choices, {roles.test!r} for the final figures")
        if roles.test:
            parts["test"] = self._whole(roles.test)
        else:
            share, seed, folds = self.config.test_fraction, self.config.split_seed, self.config.folds
            held = f"{share:.0%} of the rows were held out for test by seed {seed}"
            held = f"fold {self.config.fold} of {folds} serves as one" if folds else held
            self.notes.append(f"no test split: {held}")
        ordered = {role: parts[role] for role in ROLES}
        return ordered | {f"{name}-stored" if name in ROLES else name: self._whole(name) for name in roles.others}

    def _cut_memory(self, roles: Roles, table: Table) -> dict[str, Split]:
        """Train and, where the source has none of its own, validation and test, out of one table."""
        rows, targets = self._checked(roles.train, table)
        if self.labels.classes and len(np.unique(targets)) < 2:
            lost = "".join(f", as all rows of {name!r} are bad" for name in self.emptied)
            only = f"{self.name} has one class only in its training rows{lost}"
            raise WeftError(f"{only}; a classifier needs two: add rows of another")
        if self.reading.modality == "image" and table.groups is None and None in (roles.test, roles.validation):
            self.equals = equal_images(table, rows, *self.reading.columns, *map(str, self.reading.files.items()))
        parts: dict[str, Split] = {}
        if roles.test is None:
            held = self._tested(table, rows, targets)
            parts["test"] = MemorySplit(table, rows[held], targets[held], f"held out of {roles.train} by seed", True)
            rows, targets = rows[~held], targets[~held]
        if roles.validation:
            return parts | {"train": MemorySplit(table, rows, targets, roles.train, stored=roles.train)}
        held, how = self._cut(table, rows, targets, self.config.val_fraction, "validation")
        self.notes.append(f"{held.sum():,} of {len(rows):,} training rows were held out for validation{how}")
        parts["train"] = MemorySplit(table, rows[~held], targets[~held], f"{roles.train} without validation")
        parts["validation"] = MemorySplit(table, rows[held], targets[held], f"held out of {roles.train}{how}", True)
        return parts

    def _require_folds(self, roles: Roles, table: Table | Shards) -> None:
        """Refuse folds that cannot be."""
        folds, fold = self.config.folds, self.config.fold
        if folds is None:
            return
        if roles.test is not None:
            raise WeftError(f"{self.name} has a split for the final figures, {roles.test!r}; leave out --folds")
        if not isinstance(table, Table):
            raise WeftError(f"--folds works on sources held in memory; {self.name} is streamed (raise --memory)")
        if fold >= folds:
            raise WeftError(f"--fold {fold} is not one of {folds} folds, which are counted from 0")

    def _tested(self, table: Table, rows: Index, targets: NDArray[Any]) -> Mask:
        """Which rows are held out for test: a share of them, or a fold of cross-validation.

        Fold i takes 1/(folds − i) of what the folds before it have left, the last one the rest: every row is in one.
        """
        folds = self.config.folds
        if folds is None:
            return self._cut(table, rows, targets, self.config.test_fraction, "test")[0]
        free = np.arange(len(rows))
        for number in range(self.config.fold + 1):
            if number == folds - 1:
                taken = np.ones(len(free), dtype=bool)
            else:
                taken, _ = self._cut(table, rows[free], targets[free], 1 / (folds - number), f"fold {number}")
            tested, free = free[taken], free[~taken]
        held = np.zeros(len(rows), dtype=bool)
        held[tested] = True
        return held

    def _cut(self, table: Table, rows: Index, targets: NDArray[Any], share: float, role: str) -> tuple[Mask, str]:
        """Which rows a role takes, and how they were chosen, in words."""
        taken, how = self._drawn(table, rows, targets, share, role)
        if not taken.any():
            one = "no class has two rows that may be parted" if self.labels.classes else f"{len(rows)} row is too few"
            raise WeftError(f"{self.name} cannot be cut for {role}: {one}; choose another --target, or add rows")
        if taken.all():
            raise WeftError(f"{self.name} cannot be cut for {role}: all rows are phrases of one text; add rows")
        return taken, how

    def _drawn(self, table: Table, rows: Index, targets: NDArray[Any], share: float, role: str) -> tuple[Mask, str]:
        stream = noise.key(self.config.split_seed, role)
        strata = targets if self.labels.classes else None
        if table.groups is not None:
            groups = np.unique([str(value) for value in table.groups[rows]], return_inverse=True)[1]  # lists too
            return draw_rows(strata, groups, share, stream, len(rows)), ", by group"
        if self.reading.modality in {"text", "pair"}:
            texts = [table.inputs[row] for row in rows]
            if (cut := sentence_cut(texts, share, stream)) is not None:
                return cut, ", by sentence: each with all rows that are phrases of it"
            return draw_rows(strata, text_groups(texts), share, stream, len(rows)), ""
        # Equal vectors are cut like others: of a few coarse features they are different examples, not copies.
        equal = None if self.equals is None else equal_groups(self.equals[rows])
        taken = draw_rows(strata, equal, share, stream, len(rows))
        if not taken.any():  # a class is one image, many times: then its rows are all that can be parted
            taken = draw_rows(strata, None, share, stream, len(rows))
        return taken, ""

    def _cut_stream(self, roles: Roles, shards: Shards) -> dict[str, Split]:
        """The same by a hash of each row's number: nothing has to be held in memory."""
        bad = self._bad_rows(shards)
        wanted = {"test": self.config.test_fraction, "validation": self.config.val_fraction}
        own = {"test": roles.test, "validation": roles.validation}
        shares = {role: share for role, share in wanted.items() if own[role] is None}
        parts: dict[str, Split] = {}
        for role in ("train", *shares):
            keep = stream_cut(role, shares, self.config.split_seed, bad)
            parts[role] = self._streamed(shards, keep, f"{roles.train}, rows drawn by seed", role != "train")
        if "validation" in shares:
            total = len(parts["train"]) + len(parts["validation"])
            self.notes.append(f"{len(parts['validation']):,} of {total:,} training rows were held out for validation")
        return parts

    def _whole(self, name: str) -> Split:
        table = self.reading.tables[name]
        if isinstance(table, Table):
            return MemorySplit(table, *self._checked(name, table), name, stored=name)
        keep = stream_cut("train", {}, self.config.split_seed, self._bad_rows(table))
        return self._streamed(table, keep, name, stored=name)

    def _streamed(self, shards: Shards, keep: Any, origin: str, drawn: bool = False, stored: str = "") -> StreamSplit:
        split = StreamSplit(shards, self.labels, self.reading.modality, keep, origin, drawn, stored)
        if len(split) < self.least:
            raise WeftError(f"{self.name} has {len(split)} usable rows in {origin}; add rows, {self._needed()}")
        return split

    def _checked(self, name: str, table: Table) -> tuple[Index, NDArray[Any]]:
        """The good rows of a table and their targets; bad ones are entered into the ledger."""
        blank = self._blank(name, table)
        labels = self.labels if table.labelled else Labels("none")
        targets, faults = examine(table, labels, self.reading.modality, images=self.config.on_bad == "skip")
        self._find_emptied(table, targets, faults)
        self._enter({row: why for row, why in faults.items() if row not in blank or row in table.faults}, table)
        table.name, table.skipped = name, {*faults, *blank}
        rows = np.setdiff1d(np.arange(len(table)), np.array(sorted(table.skipped), dtype=np.int64))
        if len(rows) < self.least:
            raise WeftError(
                f"the split {name!r} of {self.name} has {len(rows)} usable rows; add rows, {self._needed()}"
            )
        return rows, targets[rows]

    def _find_emptied(self, table: Table, targets: NDArray[Any], faults: dict[int, str]) -> None:
        """Classes whose rows are all bad; refused where bad rows are, since to leave them out loses the class."""
        bad = np.isin(np.arange(len(table)), list(faults))
        for code, name in enumerate(self.labels.classes) if faults else ():
            rows = np.flatnonzero(targets == code)
            if len(rows) and bad[rows].all():
                self.emptied[name] = len(rows)
                if self.config.on_bad == "fail" and len(rows) > 1:
                    first = f"{table.place(int(rows[0]))}: {faults[int(rows[0])]}"
                    said = f"all {len(rows):,} rows of the class {name!r} are bad, {first}"
                    raise WeftError(f"{said}; repair them, or leave them, and so the class, out with --on-bad skip")

    def _needed(self) -> str:
        return f"it needs {'two' if self.least == 2 else 'one'} at least"

    def _blank(self, name: str, table: Table) -> set[int]:
        """In plain text, blank rows separate paragraphs: they are left out without being bad."""
        if self.labels.task != "none" or self.reading.modality != "text":
            return set()
        blank = blank_rows(table.inputs)
        if blank:
            self.notes.append(f"{len(blank):,} blank rows of {name!r} were left out")
        return blank

    def _bad_rows(self, shards: Shards) -> Index:
        """With `on_bad="skip"`, one pass over a streamed split finds its bad rows before the first batch."""
        if self.config.on_bad != "skip":
            return np.empty(0, np.int64)
        found: list[int] = []
        for number, start in enumerate(np.cumsum(shards.rows) - shards.rows):
            _, faults = examine(shards.block(number), self.labels, self.reading.modality, images=True)
            self._enter({int(start) + row: why for row, why in faults.items()}, shards)
            found += [int(start) + row for row in faults]
        return np.array(sorted(found), dtype=np.int64)

    def _enter(self, faults: dict[int, str], table: Table | Shards) -> None:
        for row in sorted(faults):
            self.ledger.enter(table.place(row), faults[row])
