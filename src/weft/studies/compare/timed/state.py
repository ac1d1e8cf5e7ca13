"""What a comparison in a given time has measured and chosen so far, kept in timed.json beside its runs.

The time that it has taken is noted every few seconds in spent.json as well, for the session after a kill.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from weft.disk import Damaged, write_json
from weft.studies.compare.candidates import Candidate
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.timed.layout import Stages
from weft.studies.compare.timed.pace import Pace
from weft.studies.compare.trained import Probe
from weft.studies.engine.study import read_stored
from weft.training.config import seconds

FILE, SPENT = "timed.json", "spent.json"
VALIDATION_ROWS = 1000  # that a run is judged by, at most
TEST_ROWS, MANY_TEST_ROWS, LONG = 2500, 10_000, 3600.0  # likewise; the second where there are so many seconds
OUTGROWN = 4  # times the time in which there was none to try settings
USUAL = (VALIDATION_ROWS,), (TEST_ROWS, MANY_TEST_ROWS)


@dataclass(frozen=True)
class Setting:
    """What a candidate is trained with."""

    candidate: Candidate
    lr: float

    @property
    def size(self) -> str:
        """What decides how long its steps take; the same after it was stored."""
        candidate = self.candidate
        trained = f" {candidate.start} {candidate.weights} {candidate.share:g}" if candidate.start else ""
        side = f" {candidate.img_size or candidate.max_length}" if candidate.img_size or candidate.max_length else ""
        return f"{candidate.model} {json.dumps(candidate.network)}{trained}{side}"


@dataclass
class State:
    """What is kept; `question` tells whether it is still the same one."""

    question: str = ""
    amount: float | None = None
    """parameters of every candidate at first"""
    spent: float = 0.0
    """seconds of all sessions"""
    total: float = 0.0
    """seconds that were asked for"""
    stages: Stages | None = None
    """as they were laid out for them"""
    adapted: bool = False
    """whether they were held against the time that the first runs took"""
    reserve: float = 0.0
    """seconds that mistakes and report need"""
    folds: int | None = None
    """that rows are cut into"""
    paces: dict[str, Pace] = field(default_factory=dict)
    baseline: float | None = None
    """seconds of the classical baseline a training row; None before it was timed"""
    probes: list[Probe] | None = None
    """of trained networks; None before they were looked for"""
    probed: float = 0.0
    """seconds of the whole that their rows and image sides were chosen for"""
    fitted: dict[str, Candidate] = field(default_factory=dict)
    """candidates that no seed changes, with the share of the rows that they learnt from last"""
    chosen: dict[str, Setting] = field(default_factory=dict)
    led: int = 0
    """seeds of the leaderboard in study.json, none while its runs are the first short ones"""
    judged: tuple[int | None, int | None] = (None, None)
    """validation and test rows that runs are judged by, at most"""
    tried: list[tuple[Setting, float]] = field(default_factory=list)
    """settings that were tried, and the lengths of these trials"""
    notes: list[str] = field(default_factory=list)
    story: list[tuple[float, str]] = field(default_factory=list)
    """what was planned and what happened, each after so many seconds"""

    def save(self, folder: Path) -> None:
        write_json(folder / FILE, asdict(self))


@dataclass(frozen=True)
class Spent:
    """The shape of spent.json: seconds of all sessions on a question."""

    question: str
    seconds: float

    def save(self, folder: Path) -> None:
        write_json(folder / SPENT, asdict(self))


def question_of(asked: ComparisonConfig, fingerprint: str) -> str:
    """A digest of the data and of all that was asked but how much of it: with more time or seeds it is the same, and
    with the usual number of rows that runs are judged by."""
    same = replace(asked, time=None, seeds=1, jobs=None, on=None, reuse=(), learning_curve=False)
    limits = same.reading.validation_rows, same.reading.test_rows
    validation, test = (None if rows in usual else rows for rows, usual in zip(limits, USUAL, strict=True))
    same = replace(same, reading=replace(same.reading, validation_rows=validation, test_rows=test))
    return hashlib.blake2b(f"{same} {fingerprint}".encode(), digest_size=8).hexdigest()


def read_state(folder: Path, asked: ComparisonConfig, fingerprint: str) -> State:
    """What an earlier session kept of the same question; nothing, where there was none or its file is damaged."""
    found, question = stored(folder), question_of(asked, fingerprint)
    if found.question != question:
        return State(question, folds=asked.reading.folds)
    found = replace(found, spent=max(found.spent, noted(folder, question)))
    return replace(found, amount=None, stages=None, chosen={}, adapted=False) if outgrown(found, asked) else found


def outgrown(found: State, asked: ComparisonConfig) -> bool:
    """Whether there is so much more time than before, when it was too short to try settings, that they are chosen now,
    and the sizes of networks with them."""
    untried = found.stages is not None and found.stages.settings < 2 and asked.trials not in (0, 1)
    return untried and asked.time is not None and seconds(asked.time) >= OUTGROWN * found.total


def noted(folder: Path, question: str) -> float:
    """Seconds that were spent on a question, as they were noted last."""
    with suppress(Damaged):
        found = read_stored(folder / SPENT, Spent, "")
        return found.seconds if found.question == question else 0.0
    return 0.0


def anew(folder: Path, asked: ComparisonConfig, fingerprint: str) -> str:
    """Why nothing that an earlier session measured and chose counts, as a sentence; empty where it does."""
    found, folds = stored(folder), asked.reading.folds
    if not found.question or found.question == question_of(asked, fingerprint):
        return ""
    why = "something else was asked here before"
    if folds != found.folds:
        why = f"rows are cut into {folds} folds now" if folds else "rows are no longer cut into folds"
    return f"{why}: settings are chosen anew, and time counts from now on"


def stored(folder: Path) -> State:
    """What an earlier session kept, whatever it was asked."""
    found = State()
    if (path := folder / FILE).is_file():
        with suppress(Damaged):
            found = read_stored(path, State, "it is measured anew")
    return found


def judged_rows(asked: ComparisonConfig, folder: Path) -> ComparisonConfig:
    """With rows that runs are judged by, where nothing was said about it: evaluations must not take the time.

    With more time the usual ones stay as they were, so that the runs that are there can be used again.
    """
    if asked.reading.folds is not None:  # which test every row
        return asked
    long = seconds(asked.time or asked.amount or "1s") >= LONG
    reading, (_, before) = asked.reading, stored(folder).judged
    validation = reading.validation_rows or VALIDATION_ROWS
    usual = before if before in USUAL[1] else MANY_TEST_ROWS if long else TEST_ROWS
    test = reading.test_rows or usual
    return replace(asked, reading=replace(reading, validation_rows=validation, test_rows=test))
