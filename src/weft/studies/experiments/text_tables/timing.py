"""Times every candidate of an experiment as it will be run here, and derives the steps and the prediction."""

from __future__ import annotations

from collections.abc import Sequence

from weft.errors import WeftError
from weft.studies.engine import tasks
from weft.studies.engine.runner import Pool, choose_schedule
from weft.studies.experiments.text_tables.design import ENCODER, PERPLEXITY
from weft.studies.experiments.text_tables.forecast import Prediction
from weft.studies.experiments.text_tables.jobs import Known
from weft.studies.experiments.text_tables.run_configs import (
    EVALUATIONS,
    TASK_EVALUATIONS,
    Asked,
    from_scratch,
    pretraining,
    task_steps,
)
from weft.training.config import seconds
from weft.training.run.kinds import AnyConfig

SHORTEST = 10  # steps of a run that a time must have room for

Parts = dict[tuple[str, str], AnyConfig]  # candidate, part -> a run that can be timed before anything is trained
Costs = dict[tuple[str, str], tuple[float, float]]  # seconds of a step, and of an evaluation


def predict(asked: Asked, pool: Pool, known: Known) -> Prediction:
    """Choose a schedule, time a step and an evaluation of everything, and add up."""
    parts = timeable(asked, known)
    choose_schedule(pool, parts.values(), asked.say)
    costs = dict(zip(parts, time_runs(pool, list(parts.values()), asked.scale.probe), strict=True))
    steps = pretraining_steps(asked, costs)
    found: dict[str, dict[str, float]] = {}
    for (row, part), (step, each) in costs.items():
        pretrained = part == PERPLEXITY
        work = steps * step if pretrained else max(1, round(task_steps(asked.scale, known.tasks[part].rows))) * step
        found.setdefault(row, {})[part] = work + (EVALUATIONS if pretrained else TASK_EVALUATIONS) * each
    return Prediction(
        experiment=asked.experiment.name,
        scale=asked.scale.name,
        asked=asked.decides(),
        steps=steps,
        seconds=found,
        workers=len(pool.workers),
        threads=pool.threads,
        price_per_hour=next(iter(parts.values())).execution.price_per_hour,
        tasks=asked.tasks,
    )


def timeable(asked: Asked, known: Known) -> Parts:
    """Runs that take the time of those to come: on a task, each candidate as if it were trained from scratch."""
    parts: Parts = {
        (candidate.name, PERPLEXITY): pretraining(asked, candidate, 0, 1)
        for candidate in asked.candidates
        if candidate.start == "pretrained"
    }
    for candidate in asked.candidates:
        if candidate.name != ENCODER:
            parts |= {
                (candidate.name, task): from_scratch(asked, candidate, task, 0, known.tasks[task].rows)
                for task in asked.tasks
            }
    return parts


def time_runs(pool: Pool, configs: Sequence[AnyConfig], probe: float) -> list[tuple[float, float]]:
    """Seconds of a step and of an evaluation of each, timed for `probe`, with all workers busy as they will be."""
    found: list[tuple[float, float]] = []
    width = len(pool.workers)
    for first in range(0, len(configs), width):
        wave = [configs[number % len(configs)] for number in range(first, first + width)]  # the last one filled up
        for worker, config in zip(pool.workers, wave, strict=True):
            worker.ask(tasks.run_seconds, config, pool.threads, probe)
        found += pool.answers(tasks.run_seconds, pool.workers)
    return found[: len(configs)]


def pretraining_steps(asked: Asked, costs: Costs) -> int:
    """The steps of pre-training asked for, or those for which a mean run takes the time asked for."""
    if asked.scale.steps is not None:
        return asked.scale.steps
    trained = [cost for (_, part), cost in costs.items() if part == PERPLEXITY]
    if not trained:
        return 0
    whole = seconds(asked.scale.time or "")
    step, each = (sum(parts) / len(trained) for parts in zip(*trained, strict=True))
    steps = int((whole - EVALUATIONS * each) / step)
    if steps < SHORTEST:
        least = SHORTEST * step + EVALUATIONS * each
        raise WeftError(f"--pretrain-time {asked.scale.time} is too short for a run here; give at least {least:.0f}s")
    return steps
