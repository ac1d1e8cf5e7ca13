"""Self-training (Xie et al. 2020, Noisy Student): a trained network labels rows that have none, and a student learns
from both. Answers of at least a threshold's probability become labels; the others are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.open.source import ROLES, Source, open_unlabelled
from weft.data.open.splits import MemorySplit
from weft.data.read.cache import digest
from weft.data.sources.table import Inputs, Table
from weft.disk import user_path
from weft.errors import WeftError, nearest
from weft.terminal import brief_list
from weft.training.config import RunConfig, TeachingConfig
from weft.training.metrics import class_probabilities
from weft.training.teaching.teacher import Teacher, read_teacher


@dataclass(frozen=True)
class PseudoLabels:
    """The training rows with those that a network has labelled, and what was done."""

    train: MemorySplit
    digest: str
    """of the network, the rows and their labels"""
    facts: dict[str, Any]
    """for the record"""

    def joined(self, source: Source) -> Source:
        """The source with these training rows."""
        return replace(source, splits={**source.splits, "train": self.train})

    @property
    def note(self) -> str:
        facts = self.facts
        counts = ", ".join(f"{name} {count:,}" for name, count in facts["classes"].items())
        return (
            f"pseudo-labels: {facts['rows']:,} of {facts['of']:,} rows of {facts['unlabelled']}, which {facts['run']} "
            f"answers with a probability of at least {facts['threshold']:g}, join the training rows ({counts})"
        )


def label_rows(config: RunConfig, source: Source) -> PseudoLabels:
    """The rows without labels that the run in `pseudo_labels` answers surely enough, with its answers."""
    asked = config.teaching
    assert asked.pseudo_labels is not None
    teacher = read_teacher(asked.pseudo_labels, "--pseudo-labels", source)
    train = in_memory(source, "train")
    other, names = unlabelled(asked, source, config)
    tables, rows, targets = [train.table], [train.rows], [train.targets]
    total, best = 0, 0.0
    for name in names:
        split = in_memory(other, name)
        sure, answers, highest = answered(teacher, other, name, asked.pseudo_threshold)
        tables.append(split.table)
        rows.append(split.rows[sure] + sum(len(table) for table in tables[:-1]))
        targets.append(answers[sure].astype(train.targets.dtype))
        total, best = total + len(split), max(best, highest)
    added = np.concatenate(targets[1:])
    what = asked.unlabelled or names[0]
    if not len(added):
        raise WeftError(
            f"{teacher.folder} answers none of the {total:,} rows of {what} with a probability of at least "
            f"{asked.pseudo_threshold:g} (the highest is {best:.3g}); lower --pseudo-threshold"
        )
    counts = np.bincount(added.astype(np.int64), minlength=len(source.classes))
    mark = digest(teacher.digest, other.fingerprint, *(part.tobytes() for part in rows[1:]), added.tobytes())
    facts = {
        "run": teacher.folder, "digest": teacher.digest, "unlabelled": what, "threshold": asked.pseudo_threshold,
        "of": total, "rows": len(added), "classes": dict(zip(source.classes, counts.tolist(), strict=True)),
    }  # fmt: skip
    return PseudoLabels(joined_split(tables, rows, targets, mark), mark, facts)


def answered(
    teacher: Teacher, source: Source, name: str, threshold: float
) -> tuple[NDArray[np.bool_], NDArray[np.int64], float]:
    """Which rows of a split are answered surely enough, the class of each, and the highest probability."""
    outputs = teacher.answers(source, name)
    chances = class_probabilities(teacher.predictor.card.task, outputs).numpy()
    highest = chances.max(1)
    return highest >= threshold, chances.argmax(1), float(highest.max(initial=0.0))


def unlabelled(asked: TeachingConfig, source: Source, config: RunConfig) -> tuple[Source, list[str]]:
    """The source of the rows without labels and their splits: of the run's own source, or all of another one."""
    stored = {split.stored: name for name, split in source.splits.items() if name not in ROLES}
    own = sorted({*stored, *stored.values()})
    if asked.unlabelled is None:
        bare = [name for name, split in source.splits.items() if name not in ROLES and not split.labelled]
        if len(bare) != 1:
            has = f"has several ({brief_list(bare)})" if bare else "has none"
            raise WeftError(f"--pseudo-labels needs a split without labels, and {source.name} {has}; add --unlabelled")
        return source, bare
    if asked.unlabelled in own:
        return source, [stored.get(asked.unlabelled, asked.unlabelled)]
    if asked.unlabelled in ROLES:
        raise WeftError(
            f"--unlabelled {asked.unlabelled} is a split that the run itself uses; give another split, or a path"
        )
    if not user_path(asked.unlabelled).exists():
        further = f"its further splits are {brief_list(own)}" if own else "it has no further splits"
        meant = nearest(asked.unlabelled, own)
        raise WeftError(
            f"{source.name} has no split {asked.unlabelled!r}, nor is there such a path; {meant or further}"
        )
    reading = replace(config.reading, target=None, task="none", inputs=tuple(source.columns) or None)
    other = open_unlabelled(asked.unlabelled, reading, source.modality)
    if other.columns != source.columns and source.modality == "vector":
        raise WeftError(
            f"{asked.unlabelled} has other columns ({brief_list(other.columns)}) than {source.name} "
            f"({brief_list(source.columns)}); give it the same"
        )
    return other, list(other.splits)


def in_memory(source: Source, name: str) -> MemorySplit:
    split = source.splits[name]
    if not isinstance(split, MemorySplit):
        raise WeftError(f"--pseudo-labels joins rows in memory; {source.name} is streamed (raise --memory)")
    return split


def joined_split(
    tables: list[Table], rows: list[NDArray[np.int64]], targets: list[NDArray[Any]], mark: str
) -> MemorySplit:
    """One split out of rows of several tables, end to end; `rows` count from the first table's first row."""
    starts = np.cumsum([0, *(len(table) for table in tables)])
    chosen, labels = np.concatenate(rows), np.full(starts[-1], -1)
    labels[chosen] = np.concatenate(targets)

    def place(row: int) -> str:
        number = int(np.searchsorted(starts, row, side="right")) - 1
        return tables[number].place(row - int(starts[number]))

    skipped = {int(start) + row for start, table in zip(starts, tables, strict=False) for row in table.skipped}
    table = Table(end_to_end([table.inputs for table in tables]), labels, place, name=f"{tables[0].name} and {mark}",
                  skipped=skipped)  # fmt: skip
    return MemorySplit(table, chosen, np.concatenate(targets), f"{tables[0].name} and rows with pseudo-labels")


def end_to_end(parts: list[Inputs]) -> Inputs:
    """Raw inputs of several tables as one sequence; arrays of one shape as one array."""
    if all(isinstance(part, np.ndarray) for part in parts):
        arrays = [np.asarray(part) for part in parts]
        if len({(array.shape[1:], array.dtype) for array in arrays}) == 1:
            return np.concatenate(arrays)
    return EndToEnd(parts)


class EndToEnd(Sequence[Any]):
    """Several sequences as one; what is read from disk only when it is indexed stays there."""

    def __init__(self, parts: list[Inputs]) -> None:
        self.parts = parts
        self.starts = np.cumsum([0, *(len(part) for part in parts)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, row: Any) -> Any:
        if not 0 <= row < len(self):  # iteration ends by it
            raise IndexError(row)
        number = int(np.searchsorted(self.starts, row, side="right")) - 1
        return self.parts[number][int(row - self.starts[number])]
