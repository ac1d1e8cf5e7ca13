"""How long runs take: steps and evaluations of every network are timed once a comparison, with all workers busy.

So seconds become steps that are the same for every seed and after every interruption.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from weft.training.config import AskedPrecision

STARTING = 0.6  # seconds of a run before its first step and after its last: data, network, checkpoint, record
EVALUATING = 0.15  # of a run's training goes into evaluations on the validation split, at most
EVALUATIONS = 10  # of a run, at most


@dataclass(frozen=True)
class Pace:
    """Seconds of a training step, and of an evaluation on the validation and on the test split."""

    step: float
    validation: float
    test: float
    precision: AskedPrecision = "auto"
    """number format in which a step is fastest; auto where none was tried"""
    again: float = 0.0
    """seconds of evaluating validation in float32 after training in a narrower format"""

    def at_most(self, step: float, validation: float, test: float) -> Pace:
        """The same, with these seconds where they are lower."""
        return replace(
            self, step=min(self.step, step), validation=min(self.validation, validation), test=min(self.test, test)
        )

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
        training = self.steps(length) * self.step
        judging = self.evaluations(length) * self.validation + self.again + (self.test if tested else 0.0)
        return STARTING + training + judging
