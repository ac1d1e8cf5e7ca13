"""What a comparison in a given time has measured and chosen so far, kept in timed.json beside its runs.

The time that it has taken is noted every few seconds in spent.json as well, for the session after a kill. What another
question in the same folder has left is set aside under a name of its own, for the command that asks it again.
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
from weft.studies.engine.study import DECIDES, read_stored, spelled
from weft.training.config import ExecutionConfig, seconds

FILE, SPENT = "timed.json", "spent.json"
VALIDATION_ROWS = 1000  # that a run is judged by, at most
TEST_ROWS, MANY_TEST_ROWS, LONG = 2500, 10_000, 3600.0  # likewise; the second where there are so many seconds
OUTGROWN = 4  # times the time in which there was none to try settings
USUAL = (TEST_ROWS, MANY_TEST_ROWS)


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
    rows_given: bool = False
    """whether the test rows were asked for"""
    tried: list[tuple[Setting, float]] = field(default_factory=list)
    """settings that were tried, and the lengths of these trials"""
    notes: list[str] = field(default_factory=list)
    story: list[tuple[float, str]] = field(default_factory=list)
    """what was planned and what happened, each after so many seconds"""

    def save(self, folder: Path) -> None:
        kept = stored(folder / FILE)
        if kept.question and not kept.is_of(self.question, self.judged[1]):
            spent = max(kept.spent, noted(folder, kept))
            write_json(set_aside(folder, kept.question, kept.judged[1]), asdict(replace(kept, spent=spent)))
        write_json(folder / FILE, asdict(self))

    def is_of(self, question: str, test_rows: int | None) -> bool:
        """Whether it is of a question, its runs judged by so many rows where that is decided."""
        return self.question == question and (test_rows is None or self.judged[1] in (None, test_rows))


@dataclass(frozen=True)
class Spent:
    """The shape of spent.json: seconds of all sessions on a question, of which these are the test rows."""

    question: str
    seconds: float
    test_rows: int | None = None

    def save(self, folder: Path) -> None:
        write_json(folder / SPENT, asdict(self))


def question_of(asked: ComparisonConfig, fingerprint: str) -> str:
    """A digest of the data and of all that was asked but how much of it: with more time or seeds it is the same, by
    another path to the data, and with other flags that change no result."""
    decides = replace(ExecutionConfig(), **{name: getattr(asked.execution, name) for name in DECIDES})
    same = replace(asked, source=spelled(asked.source), time=None, seeds=1, on=None, reuse=(), learning_curve=False)
    validation = None if same.reading.validation_rows == VALIDATION_ROWS else same.reading.validation_rows
    reading = replace(same.reading, validation_rows=validation, test_rows=None)  # which choose nothing
    same = replace(same, reading=reading, execution=decides)
    return hashlib.blake2b(f"{same} {fingerprint}".encode(), digest_size=8).hexdigest()


def read_state(folder: Path, asked: ComparisonConfig, fingerprint: str) -> State:
    """What an earlier session kept of the same question; nothing, where there was none or its file is damaged."""
    found, reading = kept_state(folder, asked, fingerprint), asked.reading
    if found is None:
        question = question_of(asked, fingerprint)
        return State(question, folds=reading.folds, judged=(reading.validation_rows, reading.test_rows))
    found = replace(found, spent=max(found.spent, noted(folder, found)))
    return replace(found, amount=None, stages=None, chosen={}, adapted=False) if outgrown(found, asked) else found


def kept_state(folder: Path, asked: ComparisonConfig, fingerprint: str) -> State | None:
    """What is in the folder of a question, whether it was the last that was asked there or not."""
    question, test_rows = question_of(asked, fingerprint), asked.reading.test_rows
    others = sorted(folder.glob(set_aside(folder, question, "*").name))
    kept = (stored(path) for path in (folder / FILE, *others))
    return next((state for state in kept if state.is_of(question, test_rows)), None)


def outgrown(found: State, asked: ComparisonConfig) -> bool:
    """Whether there is so much more time than before, when it was too short to try settings, that they are chosen now,
    and the sizes of networks with them."""
    untried = found.stages is not None and found.stages.settings < 2 and asked.trials not in (0, 1)
    return untried and asked.time is not None and seconds(asked.time) >= OUTGROWN * found.total


def noted(folder: Path, state: State) -> float:
    """Seconds that were spent on the question of a state, as they were noted last."""
    with suppress(Damaged):
        found = read_stored(folder / SPENT, Spent, "")
        return found.seconds if state.is_of(found.question, found.test_rows) else 0.0
    return 0.0


def anew(folder: Path, asked: ComparisonConfig, fingerprint: str) -> str:
    """Why nothing that an earlier session measured and chose counts, as a sentence; empty where it does."""
    found, folds = stored(folder / FILE), asked.reading.folds
    if not found.question or kept_state(folder, asked, fingerprint) is not None:
        return ""
    why = "something else was asked here before"
    if folds != found.folds:
        why = f"rows are cut into {folds} folds now" if folds else "rows are no longer cut into folds"
    elif found.question == question_of(asked, fingerprint):
        why = f"networks are judged by {asked.reading.test_rows:,} test rows now, no longer by {found.judged[1]:,}"
    return f"{why}: settings are chosen anew, and time counts from now on"


def set_aside(folder: Path, question: str, test_rows: int | str | None) -> Path:
    """Where the state of a question is while the folder is used for another."""
    return folder / f"{Path(FILE).stem}-{question}-{test_rows}.json"


def stored(path: Path) -> State:
    """What an earlier session kept, whatever it was asked."""
    found = State()
    if path.is_file():
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
    reading, found = asked.reading, stored(folder / FILE)
    validation, before = reading.validation_rows or VALIDATION_ROWS, found.judged[1]
    usual = before if before in USUAL and not found.rows_given else MANY_TEST_ROWS if long else TEST_ROWS
    test = reading.test_rows or usual
    return replace(asked, reading=replace(reading, validation_rows=validation, test_rows=test))
