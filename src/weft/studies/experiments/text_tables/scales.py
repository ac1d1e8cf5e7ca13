"""Three scales of one experiment: `smoke` is a minute, `cpu` at most two hours on two cores, `paper` as published.

A scale shrinks the published shapes by a factor in width and one in depth, so that they keep their proportions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ScaleName = Literal["smoke", "cpu", "paper"]


@dataclass(frozen=True)
class ExperimentScale:
    """How large the networks of an experiment are, and how long they learn."""

    name: ScaleName
    width: float  # of the published widths
    depth: float  # of the published layers
    depths: int  # candidates of table 7 for each family
    vocabulary: int
    length: int  # tokens of a sequence
    batch: int  # sequences of a step
    rate: float
    seeds: int
    steps: int | None = None  # of pre-training; None: as many as `time` has room for
    time: str | None = None  # of a pre-training run, on the mean over the candidates; None: the experiment's own
    task_epochs: float = 3.0
    task_batch: int = 32
    task_rate: float = 3e-4  # of fine-tuning
    scratch_rate: float = 1e-3  # of learning a task without pre-training
    probe: float = 4.0  # seconds for which each candidate is timed

    def wide(self, published: int) -> int:
        """A published width at this scale: a multiple of 16, so that heads and halves come out whole."""
        return max(16, 16 * round(published * self.width / 16))

    def layers(self, published: int) -> int:
        """A published number of layers at this scale."""
        return max(1, round(published * self.depth))


SCALES: dict[str, ExperimentScale] = {
    "smoke": ExperimentScale("smoke", 1 / 16, 1 / 6, 2, 512, 32, 16, 3e-3, 2, steps=20, task_epochs=0.2, probe=0.2),
    # width and depth of cpu: the largest that see some million tokens in minutes on one core
    "cpu": ExperimentScale("cpu", 1 / 8, 1 / 6, 3, 4096, 64, 32, 3e-3, 2, task_epochs=2.0),
    # Liu et al. 2021, appendix: 125,000 steps of 2048 sequences of 128 tokens, rate 7e-4
    "paper": ExperimentScale("paper", 1, 1, 4, 32000, 128, 2048, 7e-4, 5, steps=125_000),
}
