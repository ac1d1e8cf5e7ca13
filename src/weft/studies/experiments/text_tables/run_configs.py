"""What was asked of an experiment, and the configurations of its runs. Loads no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from weft.data.config import TransformConfig
from weft.data.corpus.config import CorpusConfig, TokenizingConfig
from weft.errors import WeftError
from weft.studies.experiments.text_tables.design import Experiment, TableCandidate, table_candidates
from weft.studies.experiments.text_tables.scales import ExperimentScale
from weft.training.config import DurationConfig, ExecutionConfig, OptimisationConfig, RunConfig
from weft.training.finetuning.config import FinetuneConfig, ThawingConfig
from weft.training.pretraining.config import PretrainConfig

EVALUATIONS = 8  # points of a pre-training curve on the validation split
TASK_EVALUATIONS = 4
DECAY = 0.01  # Liu et al. 2021, appendix


@dataclass(frozen=True)
class Asked:
    """An experiment at a scale on a corpus, in a folder."""

    experiment: Experiment
    scale: ExperimentScale
    source: str
    folder: Path
    seeds: int
    command: str
    say: Callable[[str], None]
    tasks: dict[str, str] = field(default_factory=dict)  # name -> source, for fine-tuning
    encoder: str | None = None  # folder of a trained encoder; without one, it is trained here
    on: str | None = None  # the cluster that runs are computed on

    @property
    def candidates(self) -> list[TableCandidate]:
        return table_candidates(self.experiment, self.scale, self.encoder)

    def decides(self) -> dict[str, Any]:
        """What must stay the same while a folder's runs go on; more seeds may be added."""
        scale = {"steps": self.scale.steps, "time": self.scale.time}
        return {"source": self.source, **scale, "tasks": self.tasks, "encoder": self.encoder}


def pretraining(asked: Asked, candidate: TableCandidate, seed: int, steps: int) -> PretrainConfig:
    """The pre-training run of a candidate."""
    scale = asked.scale
    return PretrainConfig(
        source=asked.source,
        model=candidate.model,
        network=candidate.network,
        seed=seed,
        reading=CorpusConfig(val_fraction=0.005),  # evaluations must not take the time of training
        transform=TokenizingConfig(vocab_size=scale.vocabulary, max_length=scale.length),
        optimisation=OptimisationConfig(batch_size=scale.batch, lr=scale.rate, weight_decay=DECAY),
        duration=DurationConfig(steps=steps),
        execution=execution(scale, steps / EVALUATIONS),
    )


def from_scratch(asked: Asked, candidate: TableCandidate, task: str, seed: int, rows: int = 1) -> RunConfig:
    """The run of a candidate on a task without any pre-training; it takes as long as its other runs on the task.

    `rows` are those to train on, so that evaluations come out evenly.
    """
    scale = asked.scale
    return RunConfig(
        source=asked.tasks[task],
        model=candidate.model,
        network={**candidate.network, "depth": max(1, candidate.network["depth"])},
        seed=seed,
        transform=TransformConfig(vocab_size=scale.vocabulary, max_length=scale.length),
        optimisation=OptimisationConfig(batch_size=scale.task_batch, lr=scale.scratch_rate, weight_decay=DECAY),
        duration=DurationConfig(epochs=scale.task_epochs),
        execution=execution(scale, task_steps(scale, rows) / TASK_EVALUATIONS),
    )


def finetuning(asked: Asked, candidate: TableCandidate, task: str, seed: int, start: str, rows: int) -> FinetuneConfig:
    """The run of a candidate on a task from trained weights: its own, which all move, or an encoder's, which stay."""
    scale, frozen = asked.scale, candidate.start == "embeddings"
    above = frozen and candidate.deep  # a linear probe has no network of its own
    rate = scale.scratch_rate if frozen else scale.task_rate
    return FinetuneConfig(
        source=asked.tasks[task],
        start=start,
        model=candidate.model if above else "",
        network=candidate.network if above else {},
        seed=seed,
        transform=TransformConfig(vocab_size=scale.vocabulary, max_length=scale.length),
        thawing=ThawingConfig(frozen=frozen),
        optimisation=OptimisationConfig(batch_size=scale.task_batch, lr=rate, weight_decay=DECAY, sched="linear"),
        duration=DurationConfig(epochs=scale.task_epochs),
        execution=execution(scale, task_steps(scale, rows) / TASK_EVALUATIONS),
    )


def task_steps(scale: ExperimentScale, rows: int) -> float:
    """Steps of a run on a task with so many training rows."""
    return scale.task_epochs * rows / scale.task_batch


def execution(scale: ExperimentScale, eval_every: float) -> ExecutionConfig:
    """One form of computation for all candidates, so that a prediction made before the first run holds for the last."""
    precision: Literal["auto", "float32"] = "auto" if scale.name == "paper" else "float32"
    return ExecutionConfig(precision=precision, compile=False, eval_every=max(1, round(eval_every)))


def named_tasks(experiment: Experiment, corpus: str, sources: tuple[str, ...]) -> dict[str, str]:
    """The tasks by the names of their columns: `sst2` and `mnli` are recognised, others go by their source's name."""
    if not experiment.tasks:
        return {}
    names = [Path(source).stem.lower() for source in sources or (corpus,)]
    known = [next((task for task in ("sst2", "mnli") if task in name.replace("-", "")), name) for name in names]
    if len(set(known)) < len(known):
        raise WeftError(f"--tasks names {known[0]} twice; give each task once")
    return dict(zip(known, sources or (corpus,), strict=True))


def at_scale(experiment: Experiment, scale: ExperimentScale, steps: int | None, time: str | None) -> ExperimentScale:
    """The scale with the length of its pre-training runs that was asked for, or that the experiment has there."""
    if time is not None:
        return replace(scale, steps=None, time=time)
    steps = scale.steps if steps is None else steps
    return replace(scale, steps=steps, time=experiment.time if steps is None else None)
