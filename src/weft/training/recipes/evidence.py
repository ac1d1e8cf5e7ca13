"""What recipes have reached: the runs of every seed, kept as a small JSON file a recipe in `records/`.

A figure is the mean over the seeds with its spread; a curve lets the first part of a run be checked against it.
Nothing here loads torch.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from weft.disk import read_object, validated, write_json

FOLDER = Path(__file__).parent / "records"
SLACK = 0.02  # of an accuracy: how far one more run may lie from the others, beyond three deviations of theirs
POINTS = 60  # of a curve that is kept


@dataclass(frozen=True)
class SeedRun:
    """One finished run of a recipe."""

    seed: int
    score: float
    """on the split named in the record"""
    steps: int
    epochs: float
    parameters: int
    core_seconds: float
    """processor time of the training loop and its evaluations"""
    wall_seconds: float
    threads: int
    processor: str
    commit: str
    curve: list[tuple[int, float]]
    """(step, score on validation)"""


@dataclass(frozen=True)
class Change:
    """A recipe with one thing changed, in a shorter run judged on the validation split."""

    what: str
    """empty: nothing"""
    score: float
    epochs: float
    core_seconds: float


@dataclass(frozen=True)
class Evidence:
    """All that is known of a recipe."""

    recipe: str
    metric: str
    split: str
    note: str
    """what mattered"""
    runs: list[SeedRun]
    changes: list[Change] = field(default_factory=list)
    """what each part of it brings, the unchanged recipe first"""

    @property
    def scores(self) -> list[float]:
        return [run.score for run in self.runs]

    @property
    def spread(self) -> float | None:
        """The deviation over seeds; None for one seed."""
        return stdev(self.scores) if len(self.runs) > 1 else None

    def figure(self) -> str:
        """Such as `85.2 ± 0.3 (3 seeds)`, in percent where the metric is a share."""
        percent = 100 if self.metric != "r2" else 1
        value = f"{percent * mean(self.scores):.{1 if percent == 100 else 3}f}"
        if self.spread is None:
            return f"{value} (1 seed)"
        return f"{value} ± {percent * self.spread:.1f} ({len(self.runs)} seeds)"

    def core_time(self) -> str:
        """Processor time of one run, in words."""
        seconds = mean(run.core_seconds for run in self.runs)
        if seconds < 120:
            return f"{seconds:.0f} s"
        return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"

    def expected(self, step: int) -> tuple[float, float] | None:
        """Lowest and highest score on validation that a sound run has at a step; None before the first evaluation."""
        found = [value for run in self.runs if (value := at(run.curve, step)) is not None]
        return around(found) if found else None


def around(scores: list[float]) -> tuple[float, float]:
    """Between which scores one more sound run lies."""
    slack = SLACK + (3 * stdev(scores) if len(scores) > 1 else 0.0)
    return min(scores) - slack, max(scores) + slack


def at(curve: list[tuple[int, float]], step: int) -> float | None:
    """The score of the last evaluation up to a step."""
    before = [value for known, value in curve if known <= step]
    return before[-1] if before else None


def path_of(name: str) -> Path:
    return FOLDER / f"{name.replace('/', '-')}.json"


def evidence_of(name: str) -> Evidence | None:
    """What is stored about a recipe."""
    path = path_of(name)
    return validated(Evidence, read_object(path), path) if path.is_file() else None


def seed_run(record: dict[str, Any]) -> SeedRun:
    """What is kept of the record of a finished run."""
    curve = [(e["step"], e["validation_metric"]) for e in record["curve"] if "validation_metric" in e]
    apart = max(1, -(-len(curve) // POINTS))
    return SeedRun(
        seed=record["config"]["seed"],
        score=record["metrics"][record["metric"]],
        steps=record["steps"],
        epochs=round(record["epochs"], 3),
        parameters=record["parameters"],
        core_seconds=round(record["cpu_seconds"], 1),
        wall_seconds=round(record["wall_seconds"], 1),
        threads=record["environment"]["threads"],
        processor=record["environment"]["processor"],
        commit=record["environment"]["commit"] or "",
        curve=[(step, round(value, 5)) for step, value in curve[apart - 1 :: apart]],
    )


def write_evidence(name: str, records: list[dict[str, Any]], note: str) -> Evidence:
    """Keep finished runs as what is known of a recipe, seed by seed; changes of it that were tried stay."""
    runs = sorted((seed_run(record) for record in records), key=lambda run: run.seed)
    split, known = records[0]["config"]["objective"]["judged_on"], evidence_of(name)
    return keep(Evidence(name, records[0]["metric"], split, note, runs, known.changes if known else []))


def write_changes(known: Evidence, changes: list[Change]) -> Evidence:
    """Keep what changes of a recipe made of it, beside its runs."""
    return keep(replace(known, changes=changes))


def keep(made: Evidence) -> Evidence:
    FOLDER.mkdir(exist_ok=True)
    write_json(path_of(made.recipe), asdict(made))
    return made
