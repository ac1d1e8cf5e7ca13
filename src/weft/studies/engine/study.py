"""A study is a list of runs in a folder, and a way to draw them.

study.json             what was asked: candidates, seeds, budget, the source's facts, the command
worker_time.json       the time that workers have had for a comparison
runs/NAME-seedN-KEY/   a run folder each; KEY is a digest of the configuration and of the data's content
logs/NAME-….txt        what a run printed
failures/NAME-….json   why a run has no record

What is read back is checked against the shape that it was written in.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field

from weft.data.config import EMBEDDED
from weft.disk import Damaged, parse, read_text, validated, write_json
from weft.errors import WeftError
from weft.studies.compare.candidates import Candidate, Facts
from weft.training.config import RunConfig, to_dict
from weft.training.finetuning.config import FinetuneConfig
from weft.training.run.kinds import AnyConfig
from weft.training.run.plan import Plan, Timing
from weft.training.storage.run_folder import RunFolder

T = TypeVar("T")

FORMAT = 1
DECIDES = ("device", "strategy", "precision", "compile", "eval_every")  # of `execution`
"""What of the execution changes a result by more than the order of its sums: the number format, how it is compiled, and
between which evaluations the best weights are chosen. Threads are not among it: the schedule chooses them anew."""


@dataclass(frozen=True)
class StoredRun:
    """A run as study.json lists it."""

    candidate: str
    part: str
    seed: int
    share: float
    name: Annotated[str, Field(pattern=r"^[^/\\]+$")]


@dataclass(frozen=True)
class StoredStudy:
    """The shape of study.json."""

    format: int
    title: str
    facts: Facts
    candidates: list[Candidate]
    runs: list[StoredRun]
    trials: list[StoredRun]
    match: str
    budget: str
    command: str
    notes: list[str]
    overhead: str
    story: list[tuple[float, str]] = field(default_factory=list)
    spent: float | None = None
    question: str | None = None


@dataclass(frozen=True)
class Failure:
    """Why a run has no record, and what it printed; `waiting` says that it has not been tried."""

    reason: str
    log: str = ""
    waiting: bool = False


@dataclass(frozen=True)
class Job:
    """One run of a study: its candidate, its whole configuration, and which part of the candidate's work it is.

    `after` names another run of the study, from whose network this one starts; the configuration has that name as its
    `start`, so that the study may lie anywhere.
    """

    candidate: str
    config: AnyConfig
    fingerprint: str
    part: str = ""
    after: str = ""
    size: str = field(default="", compare=False)  # in words, where it is not the candidate's usual one

    @property
    def seed(self) -> int:
        return self.config.seed

    @property
    def which(self) -> str:
        """Which run of its candidate it is, in words: by its seed, a trial by its rate and size."""
        trial = isinstance(self.config, RunConfig) and self.config.objective.judged_on == "validation"
        return f"rate {self.config.optimisation.lr:g}{self.size}" if trial else f"seed {self.seed}"

    @property
    def labelled(self) -> RunConfig:
        """The configuration of a supervised run, where only such runs make sense."""
        assert isinstance(self.config, RunConfig)
        return self.config

    @cached_property
    def key(self) -> str:
        """Digest of what decides the result."""
        decides = to_dict(self.config)
        decides["source"] = spelled(self.config.source)
        decides["execution"] = {name: decides["execution"][name] for name in DECIDES}
        counted = any(decides["duration"][name] is not None for name in ("epochs", "steps"))
        if counted and decides.get("objective", {}).get("smoothing", 0.0) is None:
            decides["objective"]["smoothing"] = 0.0  # as it was written when none was the only default
        content = json.dumps([decides, self.fingerprint], sort_keys=True)
        return hashlib.blake2b(content.encode(), digest_size=4).hexdigest()

    @cached_property
    def of_any_seed(self) -> AnyConfig:
        """The configuration without its seed."""
        return replace(self.config, seed=0)

    @property
    def name(self) -> str:
        safe = "".join(letter if letter.isalnum() or letter in "-_+" else "-" for letter in self.candidate)
        part = f"-{self.part}" if self.part else ""
        return f"{safe}{part}-seed{self.seed}-{self.key}"


@dataclass(frozen=True)
class Study:
    """What was asked, and where it is kept."""

    folder: Path
    title: str
    facts: Facts
    candidates: list[Candidate]
    jobs: list[Job]
    match: str = "none"
    budget: str = ""
    command: str = ""
    notes: list[str] = field(default_factory=list)
    overhead: str = ""
    """what its last session took beyond training, as a sentence"""
    trials: list[Job] = field(default_factory=list)
    """short runs by which the learning rates were chosen"""
    reuse: tuple[str, ...] = ()
    """folders below which finished runs that were asked for the same are taken over"""
    processor: str = ""
    """the only processor whose runs are taken over, where costs are compared"""
    story: list[tuple[float, str]] = field(default_factory=list)
    """what was planned and what happened, each after so many seconds"""
    spent: float | None = None
    """seconds of all sessions, where the time of the whole was given and not that of a run"""
    question: str | None = None
    """which of several that may be asked in a folder it answers"""
    timings: dict[str, Timing] = field(default_factory=dict)
    """of runs, by their names, on the threads that they will have: these measure nothing themselves; not stored"""

    def run_folder(self, job: Job) -> RunFolder:
        return RunFolder(self.folder / "runs" / job.name)

    def placed(self, job: Job) -> AnyConfig:
        """The configuration with the folder of the run that it starts from, if it starts from one."""
        if not job.after:
            return job.config
        assert isinstance(job.config, FinetuneConfig)
        return replace(job.config, start=str(self.folder.resolve() / "runs" / job.after))

    def log(self, job: Job) -> Path:
        return self.folder / "logs" / f"{job.name}.txt"

    def failure(self, job: Job) -> Path:
        return self.folder / "failures" / f"{job.name}.json"

    def done(self, job: Job) -> bool:
        """Whether the run has ended, well or not: then it is never run again. A damaged record does not count."""
        return self.run_folder(job).record() is not None

    def finished(self, job: Job) -> bool:
        """Whether the run has ended well."""
        return (self.run_folder(job).record() or {}).get("status") == "finished"

    def ended(self, job: Job) -> bool:
        """Whether the run is done, or its process died."""
        return self.done(job) or self.failure(job).is_file()

    def known_plan(self, job: Job, threads: int) -> Plan | Timing | None:
        """The plan of a run that differs by its seed alone, so that one probe serves all seeds; or what was timed of
        such runs.

        Not where a time was asked for: there one disturbed probe would give all seeds the wrong number of steps.
        """
        if job.config.duration.time is not None:
            return None
        if job.name in self.timings:
            return self.timings[job.name]
        for other in self.jobs:
            if (other.candidate, other.part) != (job.candidate, job.part) or other.seed == job.seed:
                continue
            if other.of_any_seed != job.of_any_seed:
                continue
            folder = self.run_folder(other)
            plan = folder.plan() if (folder.path / "run.yaml").is_file() else None
            if plan is not None and plan.threads == threads:
                return plan
        return None

    def record_failure(self, job: Job, reason: str) -> None:
        self.failure(job).parent.mkdir(parents=True, exist_ok=True)
        write_json(self.failure(job), asdict(Failure(reason, str(self.log(job).relative_to(self.folder)))))

    def save(self) -> None:
        """Write study.json, from which the leaderboard and the report can be drawn again."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {
            "format": FORMAT,
            "title": self.title,
            "facts": asdict(self.facts),
            "candidates": [asdict(candidate) for candidate in self.candidates],
            "runs": [asdict(listed(job)) for job in self.jobs],
            "trials": [asdict(listed(job)) for job in self.trials],
            "match": self.match,
            "budget": self.budget,
            "command": self.command,
            "notes": self.notes,
            "overhead": self.overhead,
            "story": self.story,
            "spent": self.spent,
            "question": self.question,
        }
        write_json(self.folder / "study.json", content)


def spelled(source: str) -> str:
    """A source as it is called in digests: `photos/`, `./photos` and the whole path are the same folder."""
    if source in EMBEDDED or not Path(source).exists():
        return source
    below = os.path.relpath(source)
    return os.path.normpath(Path(source).absolute()) if below.startswith("..") else below


def listed(job: Job) -> StoredRun:
    return StoredRun(job.candidate, job.part, job.seed, job.config.reading.train_fraction, job.name)


def read_study(folder: Path) -> dict[str, Any] | None:
    """The content of study.json, or None where there is none."""
    path = folder / "study.json"
    if not path.is_file():
        return None
    remedy = "the command that made it writes it anew and keeps the runs that are finished"
    version = read_stored(path, Versioned, remedy).format
    if version > FORMAT:
        raise WeftError(f"{path} was written by a newer weft (format {version}, this one knows {FORMAT}); upgrade weft")
    return asdict(read_stored(path, StoredStudy, remedy))


@dataclass(frozen=True)
class Versioned:
    """What every version of study.json has."""

    format: int


def why_missing(folder: Path, name: str) -> Failure:
    """Why a run of a study has no record."""
    path = folder / "failures" / f"{name}.json"
    if not path.is_file():
        return Failure("not run yet", waiting=True)
    try:
        return read_stored(path, Failure, "")
    except Damaged:
        return Failure(f"unknown, since {path} is damaged")


def read_stored(path: Path, shape: type[T], remedy: str) -> T:
    """The content of a file in its shape; `remedy` ends the sentence about one that has another."""
    return _read(path, shape, remedy)[1]


def read_whole(path: Path, shape: type[Any], remedy: str) -> dict[str, Any]:
    """All that a file holds which has at least this shape."""
    return dict(_read(path, shape, remedy)[0])


def _read(path: Path, shape: type[T], remedy: str) -> tuple[Any, T]:
    try:
        content = parse(read_text(path), path)
        return content, validated(shape, content, path)
    except Damaged as error:
        raise Damaged(f"{path} is damaged, or was not written by weft; {remedy} ({error})") from error
