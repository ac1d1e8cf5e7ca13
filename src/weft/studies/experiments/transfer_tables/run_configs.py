"""What was asked of a transfer study, and the configurations of its runs. Loads no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.data.config import AugmentConfig, TransformConfig
from weft.studies.experiments.transfer_tables.design import TransferRow, table_rows, task_name
from weft.studies.experiments.transfer_tables.scales import TRAINED, Changes, TransferScale
from weft.training.config import (
    DurationConfig,
    ExecutionConfig,
    ObjectiveConfig,
    OptimisationConfig,
    ReadingConfig,
    RunConfig,
)
from weft.training.finetuning.config import FinetuneConfig

EVALUATIONS = 4
REGULARISED: dict[str, Any] = {"optimisation": {"weight_decay": 0.05}, "objective": ObjectiveConfig(smoothing=0.1)}
PLAIN: dict[str, Any] = {
    "optimisation": {"weight_decay": 0.0},
    "objective": ObjectiveConfig(smoothing=0.0),
    "augment": AugmentConfig(flip=False, crop_padding=0),
}


@dataclass(frozen=True)
class Asked:
    """A study at a scale, in a folder."""

    study: str
    scale: TransferScale
    source: str
    folder: Path
    seeds: int
    command: str
    say: Callable[[str], None]
    tasks: dict[str, str]
    """name -> source"""
    on: str | None = None
    """the cluster that runs are computed on"""
    mirrored: bool = False
    """whether images of the larger set may be"""

    @property
    def rows(self) -> list[TransferRow]:
        return table_rows(self.study, self.scale)

    @property
    def upstream(self) -> str:
        """The column of the larger set."""
        return task_name(self.source)

    def decides(self) -> dict[str, Any]:
        """What must stay the same while a folder's runs go on; more seeds may be added."""
        return {"source": self.source, "steps": self.scale.steps, "time": self.scale.time, "tasks": self.tasks}


def network_of(row: TransferRow, scale: TransferScale) -> tuple[str, Changes, int]:
    """The network of a row: name, changes and image side."""
    if not row.family:
        return TRAINED, {}, scale.trained_side
    model, changes = scale.networks[row.family]
    return model, changes, scale.side * (2 if row.enlarged else 1)


def from_scratch(asked: Asked, row: TransferRow, source: str, seed: int, steps: int) -> RunConfig:
    """A row's network on a source without anything learnt before."""
    model, changes, side = network_of(row, asked.scale)
    settings = REGULARISED if row.regularised else PLAIN
    larger = source == asked.source and row.family
    if larger and row.regularised:  # the same for all shares: what suits a few rows suits many
        settings = {**settings, "augment": AugmentConfig(flip=asked.mirrored, crop_padding=max(1, side // 8))}
    batch = asked.scale.batch if larger else asked.scale.task_batch
    return RunConfig(
        source=source,
        model=model,
        network=changes,
        seed=seed,
        reading=ReadingConfig(train_fraction=row.share if larger else 1.0),
        transform=TransformConfig(img_size=side),
        optimisation=OptimisationConfig(batch_size=batch, **settings["optimisation"]),
        duration=DurationConfig(steps=steps),
        execution=execution(steps),
        **{name: value for name, value in settings.items() if name != "optimisation"},
    )


def finetuning(asked: Asked, row: TransferRow, source: str, seed: int, start: str) -> FinetuneConfig:
    """A row's network on a task, from what it has learnt: a run of the study, or what pip brings."""
    rate = asked.scale.task_rate if row.family else None
    optimisation = replace(FinetuneConfig().optimisation, batch_size=asked.scale.task_batch, lr=rate)
    return FinetuneConfig(
        source=source,
        start=start,
        seed=seed,
        transform=TransformConfig(img_size=network_of(row, asked.scale)[2]),
        optimisation=optimisation,
        objective=REGULARISED["objective"],
        duration=DurationConfig(steps=asked.scale.task_steps),
        execution=execution(asked.scale.task_steps),
    )


def execution(steps: int) -> ExecutionConfig:
    """One form of computation for all, so that what was timed before the first run holds for the last."""
    return ExecutionConfig(precision="float32", compile=False, eval_every=max(1, steps // EVALUATIONS))
