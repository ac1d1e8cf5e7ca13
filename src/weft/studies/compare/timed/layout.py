"""The stages of a comparison laid out in time: how long runs are, how many settings are tried, how many seeds.

Few seeds of runs that teach something come before many of runs that do not: where some hundred steps fit into a run
only with two seeds, or with fewer settings, there are only so many.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import median

from weft.studies.compare.timed.pace import Pace

SHORTER = 4  # a trial takes this part of a run: what suits a quarter suits the whole, nearly
RUNGS = 2  # lengths between one and its double, so that a longer comparison meets the lengths of a shorter one
SHORTEST = 2.0**-4
KEPT = 2  # settings beside the usual ones that get to the second round of trials
ENOUGH, OF_EXAMPLES = 300, 64  # steps of a full run, which seeds and settings are given up for, and their batch
MOST_ENOUGH = 2  # times as many of smaller batches
FEWEST_SEEDS = 2  # that are kept for longer runs: one tells nothing of another training
WORTH = {6: (32.0, 600), 3: (4.0, 200), 1: (0.0, 0)}
"""Settings of each candidate, and the seconds and steps of full runs from which on trying them pays."""


def steps_worth(steps: float, batch: int) -> float:
    """Steps that teach as much with such a batch."""
    return steps * min(MOST_ENOUGH, max(1.0, OF_EXAMPLES / batch))


@dataclass(frozen=True)
class Stages:
    """A comparison laid out in time: lengths in seconds of training on a worker's threads."""

    first: float
    """of the runs of the first leaderboard"""
    full: float
    settings: int
    """of each candidate, the usual ones included, of which the best is chosen"""
    seeds: int

    @property
    def trial(self) -> float:
        """of the last trials: part of a full run, also where the first runs had to be shorter to be early"""
        return max(self.first, self.full / SHORTER)

    @property
    def short(self) -> float:
        """of the first trials"""
        return self.trial / SHORTER

    @property
    def retried(self) -> bool:
        """Whether the usual settings have a trial of their own, since their first run was shorter than one."""
        return self.trial > self.first


@dataclass(frozen=True)
class Room:
    """What a comparison has to fit into."""

    left: float
    """seconds for all runs"""
    first_by: float
    """those in which the first leaderboard must be there"""
    workers: int
    longest: float
    """seconds that a run may train at most"""
    shares: int = 1
    """parts of the rows that each network is trained on"""
    folds: int = 1
    """runs that a seed is made of"""
    begun: float | None = None
    """the length of the first runs, where these are there already"""
    batch: int = OF_EXAMPLES


def lay_out(paces: list[Pace], room: Room, seeds: int, settings: int) -> Stages | None:
    """The most seeds and settings whose runs are long enough, or the longest runs of few; None where nothing fits."""
    found = [stages for count, each in choices(seeds, settings) if (stages := longest_runs(paces, room, count, each))]
    several = [stages for stages in found if stages.seeds >= min(seeds, FEWEST_SEEDS)]
    enough = steps_worth(ENOUGH, room.batch)
    useful = [stages for stages in several if median(pace.steps(stages.full) for pace in paces) >= enough]
    return next(iter(useful), None) or max(several or found, key=lambda stages: stages.full, default=None)


def choices(seeds: int, settings: int) -> Iterator[tuple[int, int]]:
    """Seeds and settings of each candidate, the thorough ones first."""
    counts = sorted({settings, *(count for count in WORTH if count <= settings)}, reverse=True)
    fewer = min(seeds, FEWEST_SEEDS)
    for count in counts:
        yield seeds, count
        if count < counts[0] and fewer < seeds:
            yield fewer, count
    if len(counts) == 1 and fewer < seeds:
        yield fewer, counts[0]
    yield 1, counts[-1]


def longest_runs(paces: list[Pace], room: Room, seeds: int, settings: int) -> Stages | None:
    """The longest runs that fit of so many seeds and settings; None where they are shorter than the settings need."""
    seconds, steps = WORTH[max(count for count in WORTH if count <= max(settings, 1))]
    needed = steps_worth(steps, room.batch) * median(pace.step for pace in paces)
    shortest = max(SHORTEST, seconds, needed, room.begun or 0.0)
    for length in rungs(room.longest, shortest):
        first = room.begun if room.begun is not None else first_length(paces, length / SHORTER, room)
        stages = Stages(first, length, settings, seeds)
        if fits(paces, stages, room):
            return stages
    return None


def rungs(longest: float, shortest: float = SHORTEST) -> Iterator[float]:
    """The lengths that runs may have, from the longest down; the same numbers, wherever they begin."""
    number = math.floor(RUNGS * math.log2(max(longest, SHORTEST)) + 1e-6)
    while (length := 2.0 ** (number / RUNGS)) >= shortest * (1 - 1e-6):
        yield length
        number -= 1


def fits(paces: list[Pace], stages: Stages, room: Room) -> bool:
    return max(work(paces, stages, room) / room.workers, path(paces, stages, room)) <= room.left


def work(paces: Iterable[Pace], stages: Stages, room: Room) -> float:
    """Seconds of all runs that are still to be done, one after the other."""
    return sum(
        (room.folds * pace.seconds(stages.first) if room.begun is None else 0.0)
        + trial_seconds(pace, stages)
        + room.folds * stages.seeds * room.shares * pace.seconds(stages.full)
        for pace in paces
    )


def trial_seconds(pace: Pace, stages: Stages) -> float:
    """Seconds that choosing among the settings takes for one candidate."""
    others = stages.settings - 1
    kept = min(KEPT, others)
    halving = others * pace.seconds(stages.short, tested=False) if others > kept else 0.0
    usual = 1 if kept and stages.retried else 0
    return halving + (kept + usual) * pace.seconds(stages.trial, tested=False)


def path(paces: Iterable[Pace], stages: Stages, room: Room) -> float:
    """Seconds that no number of workers saves: the longest run of every round, one round after the other."""
    alone, trials = replace(stages, settings=1), 2 if stages.settings > 1 else 0
    return max(work([pace], alone, replace(room, folds=1)) + trials * pace.seconds(stages.trial) for pace in paces)


def first_length(paces: list[Pace], length: float, room: Room) -> float:
    """The length of the first runs: a quarter of a full one, or less where they would take too long."""
    workers = room.workers / room.folds
    timely = (each for each in rungs(length) if sum(pace.seconds(each) for pace in paces) / workers <= room.first_by)
    return next(timely, SHORTEST)
