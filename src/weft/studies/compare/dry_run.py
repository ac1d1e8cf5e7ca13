"""`--plan`: how long the runs of a comparison would take, from steps that are timed here for a moment."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from weft import machine
from weft.errors import WeftError
from weft.studies.compare.comparison import plan_comparison, prepare, trial_jobs
from weft.studies.compare.config import USUAL_TIME, ComparisonConfig, decided
from weft.studies.compare.run_configs import BATCH, SHARES, run_config
from weft.studies.compare.timed.clock import in_words
from weft.studies.compare.timed.layout import Room, Stages, lay_out, trial_seconds
from weft.studies.compare.timed.pace import STARTING, Pace
from weft.studies.compare.timed.plan import PASSES, settings_of, stages_of_amount
from weft.studies.compare.timed.sizes import IN_RUNS
from weft.studies.compare.trained import starts
from weft.studies.engine import tasks
from weft.studies.engine.runner import Pool, Say
from weft.studies.engine.simulation import DryRun, PlannedRun
from weft.studies.engine.study import Job, Study
from weft.terminal import how_many
from weft.training.config import DurationConfig, RunConfig, is_fitted, seconds
from weft.training.run.plan import steps_asked

PROBE = 1.0  # seconds for which the steps of a network are timed
PROBED = 4  # steps that a run times for itself before it begins


def dry_comparison(asked: ComparisonConfig, say: Say) -> DryRun:
    """The runs of `weft compare` as they are predicted here."""
    asked = decided(asked)
    by_time = asked.time is not None or asked.match == "time"
    with Pool(asked.jobs) as pool, tempfile.TemporaryDirectory() as nowhere:
        prepared = prepare(asked, Path(nowhere), pool, say, by_time, {})
        asked = prepared.asked
        study = plan_comparison(asked, Path(nowhere), "", prepared.facts, prepared.candidates)
        if by_time:
            return dry_time(asked, study, pool, starts(asked, prepared.facts, say))
        return dry_study(study, trial_jobs(asked, study), pool, asked.execution.price_per_hour)


def dry_study(study: Study, trials: list[Job], pool: Pool, price: float) -> DryRun:
    """All runs of a study of given steps, trials of rates first."""
    pool.threads = max(1, pool.cores // len(pool.workers))
    paces = paces_of(pool, [job.labelled for job in study.jobs])
    stages = [(0, trials), (1, study.jobs)]
    runs = [
        PlannedRun(f"{job.candidate}, {words}{job.seed}", run_seconds(job.labelled, paces), stage)
        for stage, jobs in stages
        for job in jobs
        if not is_fitted(job.config.model)
        for words in (["a trial, seed ", "seed "][stage],)
    ]
    fitted = sum(is_fitted(job.config.model) for job in study.jobs)
    notes = ["the classical baseline, a run of minutes at most, is left out"] if fitted else []
    return DryRun(runs, this_machine(), len(pool.workers), price, notes)


def dry_search(config: RunConfig, trials: int, jobs: int | None) -> DryRun:
    """The trials of a search, each as long as the network at its own settings."""
    with Pool(jobs or 1) as pool:
        facts = pool.first(tasks.look, config)
        pool.threads = config.execution.threads or max(1, pool.cores // len(pool.workers))
        batch = config.optimisation.batch_size or BATCH
        config = replace(config, optimisation=replace(config.optimisation, batch_size=batch))
        steps = steps_asked(config, max(1, facts.rows // batch))
        if steps is None:
            took = seconds(config.duration.time or "1s")
        else:
            config = replace(config, duration=DurationConfig(steps=steps))
            took = run_seconds(config, paces_of(pool, [config]))
    runs = [PlannedRun(f"trial {number}", took) for number in range(trials)]
    notes = ["as if every trial had the named width and depth, and none was stopped early"]
    return DryRun(runs, this_machine(), len(pool.workers), config.execution.price_per_hour, notes)


def paces_of(pool: Pool, configs: Iterable[RunConfig]) -> dict[str, Pace]:
    """How fast each network is here, with all workers busy."""
    wanted = {shape(config): config for config in configs if not is_fitted(config.model)}
    answers = pool.each(tasks.pace, [(config, pool.threads, PROBE) for config in wanted.values()])
    for answer in answers:
        if isinstance(answer, WeftError):
            raise answer
    return {key: Pace(*answer) for key, answer in zip(wanted, answers, strict=True)}  # type: ignore[misc]


def shape(config: RunConfig) -> str:
    """What decides how long a step takes."""
    return f"{config.source} {config.model} {config.network} {config.optimisation.batch_size} {config.transform}"


def run_seconds(config: RunConfig, paces: dict[str, Pace]) -> float:
    """Seconds of a run of given steps: training, evaluations, and what is before and after."""
    pace, steps = paces[shape(config)], config.duration.steps or 1
    judged = math.ceil(steps / (config.execution.eval_every or steps)) * pace.validation
    tested = pace.test if config.objective.judged_on == "test" else 0.0
    return STARTING + (steps + PROBED) * pace.step + judged + tested


def dry_time(asked: ComparisonConfig, study: Study, pool: Pool, trained: Sequence[str] = ()) -> DryRun:
    """A comparison by time: one of a given time ends on time on any number of machines, and more of them make more of
    it. `trained` names the trained networks that take part, which are not timed."""
    learnt = [candidate for candidate in study.candidates if not candidate.fixed]
    configs = {c.name: run_config(asked, c, 0, study.facts.rows) for c in learnt}
    paces = paces_of(pool, configs.values())
    each = {name: paces[shape(config)] for name, config in configs.items()}
    stages = stages_of(asked, list(each.values()), study.facts.rows, len(pool.workers))
    notes = []
    if asked.amount is None:
        total = in_words(seconds(asked.time or USUAL_TIME))
        notes = [f"a comparison in {total} uses all of it on any number of machines: what is left over goes into "
                 f"further seeds, so machine-hours are {total} times the machines"]  # fmt: skip
    if trained:
        notes.append(f"trained networks ({', '.join(trained)}) take part where there is time, and are left out here")
    runs = planned_runs(asked, each, stages)
    return DryRun(runs, this_machine(), len(pool.workers), asked.execution.price_per_hour, notes)


def stages_of(asked: ComparisonConfig, paces: list[Pace], rows: int, workers: int) -> Stages:
    """Lengths of runs, seeds and settings as the comparison itself would lay them out before its first run."""
    if asked.amount is not None:
        return stages_of_amount(asked, asked.amount)
    left = IN_RUNS * seconds(asked.time or USUAL_TIME)
    batch = asked.optimisation.batch_size or BATCH
    epoch = rows / batch
    longest = PASSES * epoch * max(pace.step for pace in paces)
    room = Room(left, left, workers, longest, len(parts(asked)), asked.reading.folds or 1, batch=batch)
    stages = lay_out(paces, room, asked.seeds, settings_of(asked))
    if stages is None:
        raise WeftError(f"--time {asked.time} is too short for a step of each of {len(paces)} candidates")
    return stages


def planned_runs(asked: ComparisonConfig, each: Mapping[str, Pace], stages: Stages) -> list[PlannedRun]:
    """First runs, trials, and full runs: as many of a seed as it has folds, and parts of a learning curve."""
    folds = [f", fold {fold}" for fold in range(asked.reading.folds or 0)] or [""]
    runs = [
        PlannedRun(f"{name}, first{fold}", pace.seconds(stages.first)) for name, pace in each.items() for fold in folds
    ]
    if stages.settings > 1:
        trials = {name: trial_seconds(pace, stages) for name, pace in each.items()}
        runs += [PlannedRun(f"{name}, trials of settings", took, 1) for name, took in trials.items()]
    return runs + [
        PlannedRun(f"{name}, seed {seed}{fold}{part}", pace.seconds(stages.full), 2)
        for seed in range(stages.seeds)
        for name, pace in each.items()
        for fold in folds
        for part in parts(asked)
    ]


def parts(asked: ComparisonConfig) -> list[str]:
    """The training rows that a network is trained on, in words: all, and those of a learning curve."""
    return ["", *(f", {share:.0%} of the rows" for share in SHARES if asked.learning_curve)]


def this_machine() -> str:
    return f"{machine.cpu_model()} with {how_many(machine.cores(), 'core')}"
