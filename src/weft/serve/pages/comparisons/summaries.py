"""What came out of a comparison, computed again only when a run of it has ended since."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.serve.pages.study_folders import Latest
from weft.studies.results.error_examples import mistakes_of
from weft.studies.results.folds import joined
from weft.studies.results.load import Collection, Result, collect, validation_metric
from weft.studies.results.summary import on_most_rows, summarise


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
        """Of each candidate the run that is best on the validation split, of those that learnt from most rows: trained
        networks may have too little time for all."""
        results = self.collection.results
        most = {
            name: on_most_rows([r for r in results if r.candidate == name]) for name in {r.candidate for r in results}
        }
        done = {name: [result for result in several if result.finished] for name, several in most.items()}
        return {name: max(several, key=validation_metric) for name, several in done.items() if several}


def comparisons() -> Latest[Comparison]:
    """The comparisons that were asked for last."""
    return Latest(lambda entry: tuple(stamps(entry.path)), lambda entry: read(entry.path))


def read(folder: Path) -> Comparison:
    collection = collect(folder)
    collection = replace(collection, results=joined(collection.results, collection.study["facts"]["classes"]))
    return Comparison(folder, collection, summarise(collection), mistakes_of(folder, collection))


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
