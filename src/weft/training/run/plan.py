"""Every choice that was measured rather than asked for, stored before step 0 and never measured again."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from weft.training.config import STRICT
from weft.training.finetuning.config import USUAL_EPOCHS, FinetuneConfig
from weft.training.run.kinds import AnyConfig

DEFAULT_EPOCHS = 10
MOST = 1 << 40  # steps that any run may have
OFTEN = 8  # parts of what is left after each of which the clock is looked at
Steps = Annotated[int, Field(ge=1, le=MOST)]


@dataclass(frozen=True, config=STRICT)
class Timing:
    """What was measured of such runs before, in the format and on the threads that are asked for: then a run measures
    nothing, and is not compiled unless that is asked for, too."""

    step: float
    """seconds"""
    evaluation: float
    """seconds, on the validation split"""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Plan:
    """How a run will go: steps and intervals, the rate, and the form of the computation."""

    steps: Steps
    steps_per_epoch: Steps
    fingerprint: str
    """of the source; a resumed run must find the same"""
    warmup: Annotated[int, Field(ge=0, le=MOST)]
    lr: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    threads: Annotated[int, Field(ge=1, le=1 << 16)]
    precision: Literal["float32", "bf16", "fp16"]
    compile: bool
    log_every: Steps
    eval_every: Steps
    checkpoint_every: Steps
    seconds: float
    """predicted wall time of the whole run"""
    memory: int
    """predicted peak, in bytes"""
    cost: float
    """predicted, at the price asked for"""
    stop_after: Steps | None = None
    """steps without a better evaluation after which the run ends; None: never"""
    limit: float | None = None
    """seconds that the steps, their evaluations and checkpoints may take, where a time was asked for"""
    evaluation: float = 0.0
    """seconds of an evaluation on the validation split"""
    saving: float = 0.0
    """seconds of a checkpoint"""
    last_evaluations: float = 0.0
    """what is evaluated after the last step's evaluation, as a multiple of `evaluation`"""
    revised: tuple[tuple[Steps, Steps], ...] = ()
    """(after which step, to how many in all): changes of `steps` to keep the time asked for"""
    planned: Steps | None = None
    """steps before the first revision"""
    tried: tuple[str, ...] = ()
    """what was tried before step 0 and does not work on this machine, a sentence each"""

    @property
    def patience(self) -> int:
        """Steps after which a network must do better than a guess: a tenth of the run, but time enough to start."""
        return max(200, self.warmup + self.steps // 10)

    @property
    def schedule_length(self) -> int:
        """Steps that the rate's schedule was drawn for."""
        return self.planned or self.steps

    def schedule_step(self, step: int) -> float:
        """Where `step` stands in that schedule: each revision stretches or shortens what is left of it."""
        place, since, until = 0.0, 0, self.schedule_length
        for after, steps in self.revised:
            if step <= after:
                break
            place += (after - since) * (self.schedule_length - place) / (until - since)
            since, until = after, steps
        return place + (step - since) * (self.schedule_length - place) / (until - since) if self.revised else step

    def due_revision(self, step: int, passed: float, looked: float) -> bool:
        """Whether to revise the plan after `step` updates and `passed` seconds, `looked` of them at the last revision:
        after an eighth of the steps or of the time, then of what is left. Steps alone would not do: where they are ten
        times as long as those of the probe, an eighth of them takes all of the time."""
        if self.limit is None or step >= self.steps:
            return False
        last = self.revised[-1][0] if self.revised else 0
        return step - last >= max(1, (self.steps - last) // OFTEN) or passed - looked >= (self.limit - looked) / OFTEN

    def revision(self, step: int, passed: float, stepping: float, evaluating: float = 0.0) -> Plan:
        """The plan with as many steps as fit; `passed` seconds are over, `stepping` of them spent on updates and
        `evaluating` on evaluations: what those take leaves more or less time for the steps, also after the last one."""
        assert self.limit is not None
        evaluation = evaluating / (step // self.eval_every) if step >= self.eval_every else self.evaluation
        limit = self.limit - (1 + self.last_evaluations) * (evaluation - self.evaluation)
        each = stepping / step + evaluation / self.eval_every + self.saving / self.checkpoint_every
        steps = step + max(0, nearest((limit - passed) / each))  # none where not half of one fits: it ends here
        revised = (*self.revised, (step, steps))
        return replace(
            self, steps=steps, planned=self.schedule_length, revised=revised, limit=limit, evaluation=evaluation
        )

    def gone_back(self, step: int) -> Plan:
        """The plan as it was at `step`, but for the time that is left: later changes of its steps are forgotten."""
        revised = tuple(change for change in self.revised if change[0] <= step)
        steps = revised[-1][1] if revised else self.schedule_length
        return replace(self, steps=steps, revised=revised, planned=self.planned if revised else None)

    def due_log(self, step: int) -> bool:
        """Whether the curve gets a point after `step` updates; a checkpoint is preceded by one."""
        return step % self.log_every == 0 or self.due_checkpoint(step) or step == self.steps

    def due_evaluation(self, step: int) -> bool:
        return step % self.eval_every == 0 or step == self.steps

    def due_checkpoint(self, step: int) -> bool:
        return step % self.checkpoint_every == 0 or step == self.steps


def nearest(steps: float) -> int:
    """Whole steps for a time: where few fit, one more that ends a little late is nearer than one less."""
    return int(steps + 0.5)


def steps_asked(config: AnyConfig, steps_per_epoch: int) -> int | None:
    """Steps that were asked for, or None where a time was."""
    duration = config.duration
    if duration.time is not None:
        return None
    if duration.steps is not None:
        return duration.steps
    usual = USUAL_EPOCHS if isinstance(config, FinetuneConfig) else DEFAULT_EPOCHS
    return max(1, math.ceil((duration.epochs or usual) * steps_per_epoch))


def warmup_steps(config: AnyConfig, steps: int, steps_per_epoch: int) -> int:
    """Steps of warm-up, never more than half the run."""
    epochs = config.optimisation.warmup_epochs
    asked = steps / 20 if epochs is None else epochs * steps_per_epoch
    return min(round(asked), steps // 2)
