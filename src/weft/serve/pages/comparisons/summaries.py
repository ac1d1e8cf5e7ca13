"""What came out of a comparison, computed again only when a run of it has ended since."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.serve.pages.study_folders import Latest
from weft.studies.results.error_examples import read_mistakes
from weft.studies.results.folds import joined
from weft.studies.results.load import Collection, Result, collect, validation_metric
from weft.studies.results.summary import summarise


@dataclass(frozen=True)
class Comparison:
    """A comparison as it is on the disk."""

    folder: Path
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


def comparisons() -> Latest[Comparison]:
    """The comparisons that were asked for last."""
    return Latest(lambda entry: tuple(stamps(entry.path)), lambda entry: read(entry.path))


def read(folder: Path) -> Comparison:
    collection = collect(folder)
    collection = replace(collection, results=joined(collection.results, collection.study["facts"]["classes"]))
    return Comparison(folder, collection, summarise(collection), read_mistakes(folder))


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
