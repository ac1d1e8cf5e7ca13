"""The time of a comparison: what is left of it, and whether a run will still end in it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from statistics import median

from weft.studies.engine.study import Job

RESERVE, LEAST_RESERVE = 0.015, 3.0  # of the time, and seconds, for mistakes and the report
LATE = 0.02  # of the time, after which a run that takes longer than predicted is saved and left
SAVING, MOST_SAVING = 0.015, 5.0  # of the time, and seconds at most, that it has to save: all ends within 5 %
RECENT = 30  # runs that tell how wrong predictions are


class Clock:
    """The time of a comparison, over all of its sessions, and how wrong predictions have been."""

    def __init__(self, total: float, spent: float, started: float) -> None:
        self.total, self.before, self.started = total, spent, started
        self.reserve = max(LEAST_RESERVE, RESERVE * total)
        self.ratios: list[float] = []

    def spent(self) -> float:
        return self.before + time.perf_counter() - self.started

    def left(self) -> float:
        """Seconds for further runs."""
        return self.total - self.reserve - self.spent()

    def until_end(self) -> float:
        """Seconds until the comparison ends."""
        return max(0.0, self.total - self.spent())

    def slowness(self) -> float:
        """Seconds that runs take for one that was predicted."""
        return median(self.ratios[-RECENT:]) if self.ratios else 1.0


@dataclass
class Gate:
    """Lets a run begin only if it will end in time."""

    clock: Clock
    predicted: Callable[[Job], float]
    end: float | None = None
    """seconds of the comparison's time, before its own end, after which runs under way are left"""
    later: Collection[str] = ()
    """candidates whose runs can go on later"""
    later_from: float = math.inf
    """seconds of the comparison's time after which nothing waits for these alone"""

    def admits(self, job: Job) -> bool:
        return self.predicted(job) * self.clock.slowness() <= self.clock.left()

    def ended(self, job: Job, took: float) -> None:
        if predicted := self.predicted(job):
            self.clock.ratios.append(took / predicted)

    def patience(self, jobs: Collection[Job]) -> float:
        """Seconds until the runs that are still under way are saved and left, these being all that are not done."""
        spent = self.clock.spent()
        rest = self.clock.left() if self.end is None else min(self.clock.left(), self.end - spent)
        rest += LATE * self.clock.total
        if all(job.candidate in self.later for job in jobs):
            rest = min(rest, self.later_from - spent)
        return max(0.0, rest)

    def meanwhile(self) -> None:
        """What there is to do while all workers are busy."""

    def saving(self) -> float:
        """Seconds that a run which is left has to save."""
        return min(MOST_SAVING, SAVING * self.clock.total)


def as_duration(length: float) -> str:
    """A time as an option takes it, rounded up: 90s, 12m."""
    return f"{math.ceil(length)}s" if length < 120 else f"{math.ceil(length / 60)}m"


def in_words(length: float) -> str:
    """A time for people: 40 s, 12 min, 3.5 h."""
    if length < 10:
        return f"{length:.2g} s"
    if length < 120:
        return f"{length:.0f} s"
    return f"{length / 60:.3g} min" if length < 7200 else f"{length / 3600:.3g} h"
