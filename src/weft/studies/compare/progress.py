"""A comparison on the terminal while it runs: a table of candidates that is redrawn, with what was said above it.

The table reads what the runs leave on the disk, so whoever runs them need not report. Without a terminal there is no
table: the sentences alone tell how far it is.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from weft import terminal
from weft.errors import WeftError
from weft.studies.engine.runner import Say
from weft.studies.engine.study import Job, Study
from weft.training.storage.record import best_validation

if TYPE_CHECKING:
    from rich.table import Table

Left = Callable[[], float]  # seconds until the end
Watch = Callable[[Study, list[Job], str, Left | None], None]
"""Is told which runs are next, of which stage, and when all of it ends."""

REFRESHED = 1.0  # times a second
WIDTH = 32  # characters of a name that are not cut


def unwatched(study: Study, jobs: list[Job], stage: str, left: Left | None) -> None:
    """Where nobody looks on."""


@dataclass
class Line:
    """A candidate: what became of its runs in this stage."""

    waiting: int = 0
    running: list[str] = field(default_factory=list)
    failed: int = 0
    scores: list[float] = field(default_factory=list)
    """the best on the validation split, of runs that are finished"""

    @property
    def state(self) -> str:
        """In words."""
        parts = [f"training {', '.join(self.running)}"] if self.running else []
        parts += [f"{len(self.scores)} done"] if self.scores else []
        parts += [f"{self.failed} failed"] if self.failed else []
        parts += [f"{self.waiting} waiting"] if self.waiting else []
        return ", ".join(parts)

    @property
    def validation(self) -> str:
        return f"{sum(self.scores) / len(self.scores):.3f}" if self.scores else "–"

    @property
    def spread(self) -> str:
        """From the lowest to the highest seed."""
        return f"{min(self.scores):.3f}…{max(self.scores):.3f}" if len(self.scores) > 1 else ""


@dataclass
class Progress:
    """The runs that are watched, and what is known of them; `table` is drawn again and again."""

    study: Study | None = None
    jobs: list[Job] = field(default_factory=list)
    stage: str = ""
    left: Left | None = None
    ended: dict[str, float | None] = field(default_factory=dict)
    """the validation score of a run that has ended, None where it failed"""

    def watch(self, study: Study, jobs: list[Job], stage: str, left: Left | None) -> None:
        self.study, self.jobs, self.stage, self.left = study, list(jobs), stage, left

    def lines(self) -> dict[str, Line]:
        """The candidates of this stage, the best on the validation split first."""
        study, found = self.study, dict[str, Line]()
        for job in self.jobs if study is not None else ():
            assert study is not None
            line = found.setdefault(job.candidate, Line())
            score = self.score(job)
            if score is not None:
                line.scores.append(score)
            elif job.name in self.ended or study.failure(job).is_file():
                line.failed += 1
            elif (words := under_way(study, job)) is not None:
                line.running.append(words)
            else:
                line.waiting += 1
        return dict(sorted(found.items(), key=lambda pair: -max(pair[1].scores, default=-math.inf)))

    def score(self, job: Job) -> float | None:
        """The best on the validation split of a run that has ended well; a record is read once."""
        if job.name not in self.ended and self.study is not None:
            record = self.study.run_folder(job).record()
            if record is not None:
                self.ended[job.name] = best_validation(record) if record["status"] == "finished" else None
        return self.ended.get(job.name)

    def table(self) -> Table:
        """What the terminal shows."""
        from rich.table import Table

        table = Table(box=None, header_style="bold", pad_edge=False)
        longest = max((len(job.candidate) for job in self.jobs), default=0)
        table.add_column(self.stage or "candidate", no_wrap=True, min_width=min(longest, WIDTH))
        table.add_column("state", overflow="fold")
        table.add_column("validation", justify="right", no_wrap=True)
        table.add_column("spread", justify="right", no_wrap=True)
        lines: dict[str, Line] = {}
        with suppress(OSError, WeftError, KeyError):  # a file that is being written; the next look will tell
            lines = self.lines()
        for name, line in lines.items():
            table.add_row(name, line.state, line.validation, line.spread)
        table.caption, table.caption_justify = self.rest(lines), "left"
        return table

    def rest(self, lines: dict[str, Line]) -> str:
        """How far it is, and how long it will take."""
        done = sum(len(line.scores) + line.failed for line in lines.values())
        left = f", {clock_time(self.left())} left" if self.left is not None else ""
        return f"{done} of {len(self.jobs)} runs of this stage{left}"


def under_way(study: Study, job: Job) -> str | None:
    """Which run has begun; None where it has not."""
    return job.which if (study.run_folder(job).path / "run.yaml").is_file() else None


def clock_time(seconds: float) -> str:
    """Minutes and seconds, 12:05, or hours too."""
    whole = max(0, round(seconds))
    hours = f"{whole // 3600}:" if whole >= 3600 else ""
    return f"{hours}{whole % 3600 // 60:02d}:{whole % 60:02d}"


@contextmanager
def shown() -> Iterator[tuple[Say, Watch]]:
    """How to say something and whom to tell of runs: a live table on a terminal, plain lines elsewhere."""
    if not sys.stdout.isatty():
        yield print_line, unwatched
        return
    from rich.live import Live

    progress, console = Progress(), terminal.console()
    live = Live(get_renderable=progress.table, console=console, refresh_per_second=REFRESHED, transient=True)
    began = False

    def watch(*told: Any) -> None:
        nonlocal began
        progress.watch(*told)
        if not began:
            live.start()
        began = True

    try:
        yield partial(console.print, soft_wrap=True), watch
    finally:
        if began:
            live.stop()


def print_line(sentence: str) -> None:
    print(sentence, flush=True)
