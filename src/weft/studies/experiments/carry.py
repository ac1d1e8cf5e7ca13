"""Carries out an experiment: probe every arm, say what it will take, run what is not done, draw what came out.

Arms learn for equally many steps. A budget of time is the mean over the arms of a pre-training run; how many steps
that is comes from the probe, which is made once and kept, so that the same command goes on after a kill.
"""

from __future__ import annotations

from typing import Any

from weft.errors import WeftError
from weft.networks.formulas import total_parameters
from weft.studies.arms import Arm, Facts, group_of
from weft.studies.experiments.asked import EVALUATIONS, Asked, pretraining
from weft.studies.experiments.design import PERPLEXITY, Entrant
from weft.studies.experiments.prediction import Prediction, needs, plan_lines, read_prediction
from weft.studies.runner import Pool, carry_out, choose_schedule
from weft.studies.study import Job, Study
from weft.training.config import seconds

SHORTEST = 10  # steps of a run that a budget must have room for


def run_experiment(asked: Asked) -> Study:
    """Carry out an experiment in its folder, or go on with it; everything is on the disk when this returns."""
    if asked.scale.name == "paper":
        refuse(asked)
    stored = read_prediction(asked.folder)
    check_same(asked, stored)
    with Pool(stored.workers if stored else None) as pool:
        facts: Facts = pool.first("look", pretraining(asked, asked.entrants[0], 0, 1, 1))
        prediction = stored or predict(asked, pool, facts)
        prediction.save(asked.folder)
        pool.threads = prediction.threads
        study = plan(asked, prediction, facts)
        study.save()
        announce(asked, study, prediction)
        carry_out(study, pool, study.jobs, asked.say)
    return study


def refuse(asked: Asked) -> None:
    """The published shapes are for a cluster: say what they are and what they would need."""
    for line in plan_lines(asked.experiment, asked.scale):
        asked.say(line)
    need = needs(asked.experiment, asked.scale, asked.seeds)
    raise WeftError(f"the paper scale of {asked.experiment.name} is not run here: it needs {need}; use --scale cpu")


def check_same(asked: Asked, stored: Prediction | None) -> None:
    """Refuse to mix runs of two requests in one folder."""
    if stored is None:
        return
    given = {"experiment": asked.experiment.name, "scale": asked.scale.name, **asked.decides()}
    before = {"experiment": stored.experiment, "scale": stored.scale, **stored.asked}
    changed = [name for name in given if given[name] != before.get(name)]
    if changed:
        name = changed[0]
        raise WeftError(
            f"{asked.folder} holds an experiment with {name} {before.get(name)}, not {given[name]}; "
            "ask for the same, or choose another --output"
        )


# ---- the probe


def predict(asked: Asked, pool: Pool, facts: Facts) -> Prediction:
    """Time a step and an evaluation of every arm as it will be run, and derive the steps and the seconds."""
    configs = {e.name: pretraining(asked, e, 0, 1, facts.rows) for e in asked.entrants if e.start == "pretrained"}
    choose_schedule(pool, configs.values(), asked.say)
    costs = dict(zip(configs, timed(pool, list(configs.values())), strict=True))
    steps = steps_of(asked, costs)
    return Prediction(
        experiment=asked.experiment.name,
        scale=asked.scale.name,
        asked=asked.decides(),
        steps=steps,
        seconds={name: {PERPLEXITY: steps * step + EVALUATIONS * each} for name, (step, each) in costs.items()},
        workers=len(pool.workers),
        threads=pool.threads,
        price_per_hour=next(iter(configs.values())).execution.price_per_hour,
        tasks=asked.tasks,
    )


def timed(pool: Pool, configs: list[Any]) -> list[tuple[float, float]]:
    """Seconds of a step and of an evaluation of each, with all workers busy as they will be."""
    found: list[tuple[float, float]] = []
    width = len(pool.workers)
    for first in range(0, len(configs), width):
        wave = [configs[number % len(configs)] for number in range(first, first + width)]  # the last one filled up
        for worker, config in zip(pool.workers, wave, strict=True):
            worker.ask("run_seconds", config, pool.threads)
        found += [worker.answer() for worker in pool.workers]
    return found[: len(configs)]


def steps_of(asked: Asked, costs: dict[str, tuple[float, float]]) -> int:
    """The steps asked for, or those for which a mean run takes the budget."""
    if asked.scale.steps is not None:
        return asked.scale.steps
    budget = seconds(asked.scale.budget or "")
    step, each = (sum(parts) / len(costs) for parts in zip(*costs.values(), strict=True))
    steps = int((budget - EVALUATIONS * each) / step)
    if steps < SHORTEST:
        least = SHORTEST * step + EVALUATIONS * each
        raise WeftError(f"--budget {asked.scale.budget} is too short for a run here; give at least {least:.0f}s")
    return steps


# ---- the runs


def plan(asked: Asked, prediction: Prediction, facts: Facts) -> Study:
    """All runs, seed by seed, so that early results cover all arms."""
    steps, rows = prediction.steps, facts.rows
    jobs = [
        Job(entrant.name, pretraining(asked, entrant, seed, steps, rows), facts.fingerprint, PERPLEXITY)
        for seed in range(asked.seeds)
        for entrant in asked.entrants
        if entrant.start == "pretrained"
    ]
    budget = f"{prediction.steps:,} steps of {asked.scale.batch} × {asked.scale.length} tokens each"
    arms = [as_arm(entrant, asked, facts) for entrant in asked.entrants]
    title = f"table {asked.experiment.table} on {facts.name}"
    return Study(asked.folder, title, facts, arms, jobs, "none", budget, asked.command)


def as_arm(entrant: Entrant, asked: Asked, facts: Facts) -> Arm:
    if not entrant.deep:
        return Arm(entrant.name, entrant.model, "control", entrant.network)
    config = entrant.config(asked.scale).replaced(**facts.shape)
    count = {"params": total_parameters(config)}
    return Arm(entrant.name, entrant.model, group_of(config), entrant.network, True, count)


def announce(asked: Asked, study: Study, prediction: Prediction) -> None:
    for note in study.facts.notes:
        asked.say(note)
    asked.say(f"{study.title}: {len(study.arms)} rows, {asked.seeds} seeds, {study.budget}, in {study.folder}")
    asked.say(prediction.sentence(asked.seeds))
