"""How long runs take: steps and evaluations of every network are timed once a comparison, with all workers busy.

So seconds become steps that are the same for every seed and after every interruption.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

STARTING = 0.6  # seconds of a run before its first step and after its last: data, network, checkpoint, record
PROBED = 4  # steps that a run times for itself before it begins
EVALUATING = 0.15  # of a run's training goes into evaluations on the validation split, at most
EVALUATIONS = 10  # of a run, at most


@dataclass(frozen=True)
class Pace:
    """Seconds of a training step, and of an evaluation on the validation and on the test split."""

    step: float
    validation: float
    test: float

    def steps(self, length: float) -> int:
        """Steps in so many seconds of training."""
        return max(1, round(length / self.step))

    def evaluations(self, length: float) -> int:
        """Evaluations of a run that trains for so many seconds."""
        affordable = EVALUATING * length / max(self.validation, 1e-9)
        return min(EVALUATIONS, self.steps(length), max(1, int(affordable)))

    def interval(self, length: float) -> int:
        """Steps between them."""
        return math.ceil(self.steps(length) / self.evaluations(length))

    def seconds(self, length: float, tested: bool = True) -> float:
        """Seconds of a whole run that trains for `length`, with or without the test split."""
        training = (self.steps(length) + PROBED) * self.step
        judging = (self.evaluations(length) + 1) * self.validation + (self.test if tested else 0.0)
        return STARTING + training + judging


@dataclass(frozen=True)
class Stages:
    """A comparison laid out in time: lengths in seconds of training on a worker's threads."""

    first: float
    """of the runs of the first leaderboard, and of the last trials"""
    full: float
    settings: int
    """of each candidate, the usual ones included, of which the best is chosen"""
    seeds: int

    @property
    def short(self) -> float:
        """of the first trials"""
        return self.first / SHORTER


SHORTER = 4  # a trial takes this part of a run: what suits a quarter suits the whole, nearly
LADDER = 2.0  # between lengths, so that a longer comparison meets the lengths of a shorter one
SHORTEST = 2.0**-4
KEPT = 2  # settings beside the usual ones that get to the second round of trials
WORTH = {6: 32.0, 3: 4.0, 1: 0.0}  # settings of each candidate, and the length of full runs from which on they pay


def trial_seconds(pace: Pace, settings: int, first: float) -> float:
    """Seconds that choosing among so many settings takes for one candidate."""
    others = settings - 1
    kept = min(KEPT, others)
    halving = others * pace.seconds(first / SHORTER, tested=False) if others > kept else 0.0
    return halving + kept * pace.seconds(first, tested=False)


def work(paces: Iterable[Pace], stages: Stages, shares: int = 1, folds: int = 1) -> float:
    """Seconds of all runs, one after the other; `shares` is how many parts of the rows each is trained on, `folds` how
    many runs a seed is made of."""
    return sum(
        folds * pace.seconds(stages.first)
        + trial_seconds(pace, stages.settings, stages.first)
        + folds * stages.seeds * shares * pace.seconds(stages.full)
        for pace in paces
    )


def path(paces: Iterable[Pace], stages: Stages, shares: int = 1) -> float:
    """Seconds that no number of workers saves: the longest run of every round, one round after the other."""
    return max(work([pace], replace(stages, settings=1), shares) + 2 * pace.seconds(stages.first) for pace in paces)


def lay_out(
    paces: list[Pace],
    left: float,
    first_by: float,
    workers: int,
    seeds: int,
    settings: int,
    longest: float,
    shares: int = 1,
    folds: int = 1,
) -> Stages | None:
    """The longest runs, and the most settings worth their time, that fit; None where nothing does.

    `left` are the seconds for all runs and `first_by` those in which the first leaderboard must be there, both on so
    many workers; `longest` is how long a run may train at most.
    """
    options = [count for count in WORTH if count <= settings] if settings not in WORTH else [settings]
    options += [count for count in WORTH if count < settings and count not in options]
    for fewer in dict.fromkeys((seeds, min(seeds, 2), 1)):
        for count in options:
            length = 2.0 ** math.floor(math.log2(max(longest, SHORTEST)))
            while length >= max(SHORTEST, WORTH.get(count, 0.0)):
                stages = Stages(first_length(paces, length / SHORTER, first_by, workers / folds), length, count, fewer)
                if max(work(paces, stages, shares, folds) / workers, path(paces, stages, shares)) <= left:
                    return stages
                length /= LADDER
    return None


def first_length(paces: list[Pace], length: float, within: float, workers: float) -> float:
    """The length of the first runs: a quarter of a full one, or less where they would take too long."""
    while length > SHORTEST and sum(pace.seconds(length) for pace in paces) / workers > within:
        length /= LADDER
    return length
