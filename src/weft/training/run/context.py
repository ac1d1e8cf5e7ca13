"""All that a run works with, gathered for the loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from torch import nn
from torch.optim import Optimizer

from weft.data.batch.loader import Batches
from weft.training.loop.progress import MovingAverage, Progress
from weft.training.objective import Goal
from weft.training.run.distributed import Distributed
from weft.training.run.kinds import AnyConfig
from weft.training.run.plan import Plan
from weft.training.storage.checkpoints import CheckpointStore
from weft.training.storage.metrics_log import Journal


class Display(Protocol):
    """Where a run is shown."""

    def point(self, progress: Progress, event: dict[str, Any]) -> None:
        """A new point of the curve or an evaluation."""

    def say(self, sentence: str) -> None:
        """Something worth a line of its own."""

    def replan(self, plan: Plan) -> None:
        """The number of steps has changed."""


@dataclass
class Run:
    """A network on its way. `net` is `core` as the team wrapped it; both share their parameters.

    Without a folder there is no store to go back to, and without a validation split no best.
    """

    config: AnyConfig
    plan: Plan
    team: Distributed
    core: nn.Module
    net: nn.Module
    optimiser: Optimizer
    objective: Goal
    ema: MovingAverage | None
    train: Batches
    validation: Batches | None
    store: CheckpointStore | None
    journal: Journal
    display: Display
