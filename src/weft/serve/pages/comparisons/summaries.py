"""What came out of a comparison, computed again only when a run of it has ended since."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft import machine
from weft.disk import LOCK
from weft.serve.catalogue import Entry
from weft.studies.results.error_examples import read_mistakes
from weft.studies.results.folds import joined
from weft.studies.results.load import Collection, Result, collect, validation_metric
from weft.studies.results.summary import summarise

KEPT = 8  # comparisons in memory
Stamp = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Comparison:
    """A comparison as it is on the disk."""

    folder: Path
    stamp: Stamp
    collection: Collection
    """its results, those of folds put together"""
    summary: dict[str, Any]
    mistakes: dict[str, Any]

    @property
    def finished(self) -> int:
        return sum(result.finished for result in self.collection.results)

    def chosen(self) -> dict[str, Result]:
        """Of each candidate the run that is best on the validation split, trained on all rows."""
        found: dict[str, Result] = {}
        for result in self.collection.results:
            if result.finished and result.share == 1 and better(result, found.get(result.candidate)):
                found[result.candidate] = result
        return found


def better(result: Result, other: Result | None) -> bool:
    return other is None or validation_metric(result) > validation_metric(other)


class Comparisons:
    """The comparisons that were asked for last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Path, Comparison] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, entry: Entry) -> Comparison:
        """The comparison in a folder; `WeftError` where it is damaged."""
        with self._lock:
            stamp = tuple(stamps(entry.path))
            found = self._kept.pop(entry.path, None)
            if found is None or found.stamp != stamp:
                found = read(entry.path, stamp)
            self._kept[entry.path] = found
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return found


def read(folder: Path, stamp: Stamp) -> Comparison:
    collection = collect(folder)
    collection = replace(collection, results=joined(collection.results))
    return Comparison(folder, stamp, collection, summarise(collection), read_mistakes(folder))


def stamps(folder: Path) -> Iterator[tuple[str, int]]:
    """What changes when something comes out: study.json, mistakes.json, and the records of runs."""
    for name in ("study.json", "mistakes.json"):
        yield name, changed(folder / name)
    for run in sorted((folder / "runs").iterdir()) if (folder / "runs").is_dir() else ():
        yield run.name, changed(run / "record.json") + changed(run / "inference.json")


def changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def is_running(folder: Path) -> bool:
    """Whether a process drives a study in this folder."""
    held = machine.held_locks()
    try:
        number = (folder / LOCK).stat().st_ino
    except OSError:
        return False
    return number in held if held is not None else machine.Lock(folder / LOCK).is_busy()
