"""`weft compare`: which network for this data, at equal budget? From a question to a folder of finished runs.

The parent process holds no torch: workers look at the data, time steps, train, and measure.
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic.dataclasses import dataclass
from tyro.conf import Positional

from weft.data.config import EMBEDDED, AugmentConfig, TransformConfig
from weft.disk import Damaged
from weft.errors import WeftError
from weft.studies.compare.candidates import Candidate, Facts, make_candidates
from weft.studies.compare.rate_search import SHARE, best_rates, rates, short_run_rate, trial
from weft.studies.engine import tasks
from weft.studies.engine.folder_lock import driving
from weft.studies.engine.runner import Pool, Say, choose_schedule, run_jobs
from weft.studies.engine.study import Job, Study, read_study
from weft.studies.results.error_examples import keep_mistakes
from weft.training.config import (
    STRICT,
    Count,
    DurationConfig,
    ExecutionConfig,
    Natural,
    ObjectiveConfig,
    OptimisationConfig,
    Positive,
    ReadingConfig,
    RunConfig,
    batch_for,
    seconds,
)
from weft.training.storage.run_folder import RunFolder

STEPS = 300  # at least: fewer do not tell networks apart, and these keep the first command below two minutes
EPOCHS = 10
USUAL_TIME = "15m"  # of a comparison on a source of one's own
BATCH, SMALLEST, BATCHES = 64, 4, 8  # examples of a batch, at most and at least; batches of an epoch at least
EVALUATIONS = 15  # points of a run's curve on the validation split
SHARES = (0.1, 0.3)  # of the training rows, besides all of them, in a learning curve
TRIALS = 3
IN_LOOPS = (
    0.8  # of the time of a comparison goes into training; the rest is reading, probes, evaluations and the report
)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ComparisonConfig:
    """What to compare, on what, and what is held equal."""

    source: Positional[str] = "digits"
    """Name of an embedded source (digits, pydocs, …), a path, or hub:NAME."""
    models: str = "families"
    """Names of networks separated by commas, or a preset: families, mixers, gates or sizes."""
    match: Literal["params", "macs", "seconds", "none"] | None = None
    """Quantity held equal: parameters, multiply-adds, seconds of training, or nothing; by default the seconds where a
    time decides, else the parameters."""
    amount: str | None = None
    """How much of it: 100k, 1M or 2e6 parameters or multiply-adds, 90s or 4m of training a run; by default what suits
    the inputs' size."""
    time: str | None = None
    """Wall time of the whole comparison, such as 20m: every run trains for an equal part of it. By default 15m, unless
    --match, --epochs, --steps or an embedded source says otherwise."""
    seeds: Count = 3
    """Runs of each candidate; below 5, verdicts that claim a difference are called preliminary."""
    trials: Natural | None = None
    """Learning rates tried for each candidate in a quarter of a run each; by default 3, for the embedded sources 0."""
    epochs: Positive | None = None
    """Passes over the training split; by default 10 and at least 300 steps, for the embedded sources 300 steps."""
    steps: Count | None = None
    """Batches instead of epochs."""
    controls: bool = True
    """Include identity and fixed random mixing: what the rest of a token network does without learned mixing."""
    baseline: bool = True
    """Include the classical baseline: HOG or TF-IDF with logistic regression."""
    jobs: Count | None = None
    """Runs side by side; by default what is measured to be fastest. Under --match seconds it is always one."""
    learning_curve: bool = False
    """Also train on 10 and 30 % of the training rows."""
    reading: ReadingConfig = ReadingConfig()
    transform: TransformConfig = TransformConfig()
    augment: AugmentConfig = AugmentConfig()
    optimisation: OptimisationConfig = OptimisationConfig()
    objective: ObjectiveConfig = ObjectiveConfig()
    execution: ExecutionConfig = ExecutionConfig()

    def __post_init__(self) -> None:
        if self.time is not None:
            seconds(self.time)
            if self.amount is not None or self.epochs is not None or self.steps is not None:
                raise WeftError("--time decides how long runs are; leave out --amount, --epochs and --steps")
            return
        if self.epochs is not None and self.steps is not None:
            raise WeftError("--epochs and --steps contradict each other; give one of them")
        if self.match == "seconds" and (self.epochs is not None or self.steps is not None):
            raise WeftError("--match seconds takes its steps from the clock; leave out --epochs and --steps")
        if self.match == "seconds":
            if self.amount is None:
                raise WeftError("--match seconds needs --amount, the training time of each run: 90s or 4m for instance")
            seconds(self.amount)
        if self.match == "none" and self.amount is not None:
            raise WeftError("--amount needs --match params, macs or seconds: what shall be equal?")
        self.count()

    def count(self) -> float | None:
        """The amount as a number of parameters or multiply-adds."""
        return None if self.amount is None or self.match in ("seconds", "none") else quantity(self.amount)


UNITS = {"k": 1e3, "M": 1e6, "G": 1e9}


def quantity(text: str) -> float:
    """A number such as 100000, 1e6, 250k, 1.5M or 2G."""
    unit = UNITS.get(text[-1:], 1.0)
    try:
        value = float(text[:-1] if text[-1:] in UNITS else text) * unit
    except ValueError:
        value = math.nan
    if not 1 <= value < math.inf:
        raise WeftError(f"--amount {text} is not a number of parameters or multiply-adds; write 100000, 250k or 1.5M")
    return value


def compare(asked: ComparisonConfig, folder: Path, command: str, say: Say) -> Study:
    """Run a comparison in `folder`, or go on with it; everything is on the disk when this returns."""
    overhead = Overhead(folder)
    asked = decided(asked)
    whole, asked = asked.time, timed(asked, 1.0)
    with (
        driving(folder),
        Pool(1 if asked.match == "seconds" or asked.execution.device == "cuda" else asked.jobs) as pool,
    ):
        before = earlier(folder, say)
        facts: Facts = pool.first(tasks.look, run_config(asked, None, 0, 1))
        require_same_source(before, facts, folder)
        asked, notes = with_batch(asked, facts.rows), list(facts.notes)
        named = (asked.models, asked.match or "none", asked.count(), asked.controls, asked.baseline)
        candidates = make_candidates(facts, *named, notes)
        facts = replace(facts, notes=notes)
        if whole is not None:
            asked = timed(replace(asked, match=None, amount=None, time=whole), share_of_a_run(asked, candidates))
            say(f"{whole} in all: {asked.amount} of training for each run (--time)")
        study = replace(plan_comparison(asked, folder, command, facts, candidates), overhead=before.get("overhead", ""))
        study.save()
        announce(study, say)
        if any(not study.done(job) for job in study.jobs):
            schedule(pool, asked, study, say)
        study = tuned(asked, study, pool, say)
        for jobs in rounds(asked, study):
            run_jobs(study, pool, jobs, say)
            if jobs[-1] is not study.jobs[-1]:
                report_so_far(folder, say)
        measure_speeds(study, pool, say)
        try:
            keep_mistakes(study, pool)
        except WeftError as error:
            say(f"the report shows no mistakes: {error}")
        spent = overhead.sentence(len(pool.workers))
        if spent:
            say(spent)
            study = replace(study, overhead=spent)
            study.save()
    return study


def decided(asked: ComparisonConfig) -> ComparisonConfig:
    """What is held equal and for how long, where nothing was said about it."""
    if asked.match is not None or asked.time is not None:
        return asked
    if asked.source in EMBEDDED or asked.epochs is not None or asked.steps is not None or asked.amount is not None:
        return replace(asked, match="params")
    return replace(asked, time=USUAL_TIME)


def with_batch(asked: ComparisonConfig, rows: int) -> ComparisonConfig:
    """A batch that the training rows, or the smallest part of them in a learning curve, hold several times."""
    if asked.optimisation.batch_size is not None:
        return asked
    fewest = max(2, int(rows * (min(SHARES) if asked.learning_curve else 1)))
    size = batch_for(fewest, BATCHES, SMALLEST, BATCH)
    return replace(asked, optimisation=replace(asked.optimisation, batch_size=size))


def timed(asked: ComparisonConfig, share: float) -> ComparisonConfig:
    """Where a time for the whole was given: runs of so many seconds, a share of it."""
    if asked.time is None:
        return asked
    return replace(asked, match="seconds", amount=f"{max(1.0, seconds(asked.time) * share):.3g}s", time=None)


def share_of_a_run(asked: ComparisonConfig, candidates: list[Candidate]) -> float:
    """The share of a comparison's time in which one run trains; a trial is a part of a run, too."""
    learnt = sum(not candidate.fixed for candidate in candidates)
    each = asked.seeds + trials_of(asked) / SHARE
    if asked.learning_curve:
        each += asked.seeds * len(SHARES)
    return IN_LOOPS / max(1.0, learnt * each)


def trials_of(asked: ComparisonConfig) -> int:
    """Learning rates that are tried for each candidate."""
    return asked.trials if asked.trials is not None else (0 if asked.source in EMBEDDED else TRIALS)


def earlier(folder: Path, say: Say) -> dict[str, Any]:
    """What study.json said before; a damaged one is written anew where there are runs beside it."""
    try:
        return read_study(folder) or {}
    except Damaged as error:
        if not any(folder.glob("runs/*/run.yaml")):
            raise WeftError(f"{folder / 'study.json'} was not written by weft; choose another --output") from error
        say(f"{folder / 'study.json'} is damaged and is written anew")
        return {}


def require_same_source(before: dict[str, Any], facts: Facts, folder: Path) -> None:
    """Refuse the folder of a comparison on other data, whose report would be lost; by another path it is the same."""
    stored = before.get("facts", {})
    if stored and stored["name"] != facts.name and stored["fingerprint"] != facts.fingerprint:
        raise WeftError(
            f"{folder} holds a comparison on {stored['name']}, not on {facts.name}; choose another --output"
        )


def schedule(pool: Pool, asked: ComparisonConfig, study: Study, say: Say) -> None:
    """Where seconds are held equal, and on a GPU, runs never share the machine; else the clock decides."""
    if asked.jobs is not None or len(pool.workers) == 1:
        pool.threads = max(1, pool.cores // len(pool.workers))
        return
    heaviest = sorted(study.candidates, key=lambda candidate: -candidate.count.get("macs", 0))
    choose_schedule(pool, [run_config(asked, candidate, 0, study.facts.rows) for candidate in heaviest], say)


def plan_comparison(
    asked: ComparisonConfig, folder: Path, command: str, facts: Facts, candidates: list[Candidate]
) -> Study:
    """All runs, seed by seed and the heaviest first, so that early results cover all candidates."""
    ordered = sorted(candidates, key=lambda candidate: -candidate.count.get("macs", 0))
    shares = (1.0, *SHARES) if asked.learning_curve else (1.0,)
    jobs = [
        Job(candidate.name, with_fraction(run_config(asked, candidate, seed, facts.rows), share), facts.fingerprint)
        for share in shares
        for seed in range(asked.seeds)
        for candidate in ordered
        if seed == 0 or not candidate.fixed
    ]
    title = (
        f"{', '.join(candidate.name for candidate in candidates[:3])}, … on {facts.name}"
        if len(candidates) > 3
        else f"on {facts.name}"
    )
    return Study(
        folder, title, facts, candidates, jobs, asked.match or "none", budget_words(asked, candidates), command
    )


def with_fraction(config: RunConfig, share: float) -> RunConfig:
    return config if share == 1 else replace(config, reading=replace(config.reading, train_fraction=share))


def budget_words(asked: ComparisonConfig, candidates: list[Candidate]) -> str:
    """The budget for a heading."""
    if asked.match == "seconds":
        return f"{asked.amount} of training each"
    if asked.match == "none":
        return "each at its named size"
    match = asked.match or "params"
    counts = [candidate.count[match] for candidate in candidates if match in candidate.count]
    words = {"params": "parameters", "macs": "multiply-adds"}[match]
    return f"{sum(counts) / len(counts):,.0f} {words} each, within 3 %" if asked.models != "sizes" else f"three {words}"


def run_config(asked: ComparisonConfig, candidate: Candidate | None, seed: int, rows: int) -> RunConfig:
    """The configuration of one run."""
    steps = steps_of(asked, rows)
    evaluations = replace(asked.execution, eval_every=steps_per_evaluation(asked, steps, rows))
    return RunConfig(
        source=asked.source,
        model=candidate.model if candidate else "",
        network=candidate.network if candidate else {},
        seed=seed,
        reading=asked.reading,
        transform=asked.transform,
        augment=asked.augment,
        optimisation=replace(asked.optimisation, lr=asked.optimisation.lr or short_run_rate(asked.optimisation.opt)),
        objective=asked.objective,
        duration=DurationConfig(time=asked.amount) if asked.match == "seconds" else DurationConfig(steps=steps),
        execution=evaluations,
    )


def steps_of(asked: ComparisonConfig, rows: int) -> int:
    """Steps of every run, the same on any share of the rows."""
    if asked.steps is not None:
        return asked.steps
    an_epoch = max(1, rows // (asked.optimisation.batch_size or BATCH))
    if asked.epochs is not None:
        return max(1, math.ceil(asked.epochs * an_epoch))
    return STEPS if asked.source in EMBEDDED else max(STEPS, EPOCHS * an_epoch)


def steps_per_evaluation(asked: ComparisonConfig, steps: int, rows: int) -> int:
    """Steps between evaluations, in whole epochs, that give a curve of about fifteen points."""
    an_epoch = max(1, rows // (asked.optimisation.batch_size or BATCH))
    return an_epoch * max(1, round(steps / an_epoch / EVALUATIONS))


def tuned(asked: ComparisonConfig, study: Study, pool: Pool, say: Say) -> Study:
    """The study with the learning rate of each candidate that did best on the validation split, of as many for each."""
    trials = trials_of(asked)
    if trials == 0:
        return study
    if asked.optimisation.lr is not None:
        raise WeftError("--lr and --trials contradict each other; use --trials 0 with a given rate")
    learnt = {candidate.name for candidate in study.candidates if not candidate.fixed}
    tried = [
        Job(job.candidate, trial(job.labelled, rate), job.fingerprint)
        for job in study.jobs
        if job.seed == 0 and job.config.reading.train_fraction == 1 and job.candidate in learnt
        for rate in rates(job.config.optimisation.opt, trials)
    ]
    say(f"{trials} learning rates for each candidate, judged on the validation split")
    run_jobs(study, pool, tried, say)
    best = best_rates(study, tried)
    jobs = [
        replace(job, config=replace(job.config, optimisation=replace(job.config.optimisation, lr=best[job.candidate])))
        if job.candidate in best
        else job
        for job in study.jobs
    ]
    study = replace(study, jobs=jobs, notes=[f"{trials} learning rates were tried for every candidate"], trials=tried)
    study.save()
    return study


def rounds(asked: ComparisonConfig, study: Study) -> list[list[Job]]:
    """The runs seed by seed where time decides, so that there is an answer after each; else all of them at once."""
    if asked.match != "seconds" or not study.jobs:
        return [study.jobs] if study.jobs else []
    keyed = itertools.groupby(study.jobs, key=lambda job: (job.config.reading.train_fraction, job.seed))
    return [list(jobs) for _, jobs in keyed]


def report_so_far(folder: Path, say: Say) -> None:
    """The report and a line about what the runs say that are finished by now."""
    from weft.studies.results.summary import draw_report  # loads torch

    try:
        summary = draw_report(folder)
    except WeftError as error:
        say(f"no report yet: {error}")
        return
    scores = [f"{row['name']} {row['score']:.3f}" for row in summary["rows"] if row["score"] is not None]
    say(f"so far: {', '.join(scores)}; report: {folder / 'report.html'}")


def announce(study: Study, say: Say) -> None:
    for note in study.facts.notes:
        say(note)
    say(f"{len(study.candidates)} candidates, {study.budget}; {len(study.jobs)} runs in {study.folder}")


def measure_speeds(study: Study, pool: Pool, say: Say) -> None:
    """Speed and latency of one network of each candidate, on one thread; nothing else runs but others of these."""
    first: dict[str, Path] = {}
    fixed = {candidate.name for candidate in study.candidates if candidate.fixed}
    for job in study.jobs:
        if job.candidate not in first and job.candidate not in fixed and study.finished(job):
            first[job.candidate] = study.run_folder(job).path
    for trouble in pool.spread(tasks.inference_speed, list(first.values())):
        say(f"a speed in use is missing: {trouble}")


class Overhead:
    """How much of a session's time went beyond its training loops: start-up, probes, measuring, idle workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started = time.perf_counter()
        self.before = {path.parent for path in folder.glob("runs/*/run.yaml")}

    def sentence(self, workers: int) -> str:
        """The share in words; nothing where no run was trained from beginning to end this time."""
        wall = time.perf_counter() - self.started
        new = [path.parent for path in self.folder.glob("runs/*/record.json") if path.parent not in self.before]
        training = sum(float((RunFolder(path).record() or {}).get("wall_seconds", 0.0)) for path in new)
        if training <= 0:
            return ""
        beside = f" × {workers} side by side" if workers > 1 else ""
        share = wall * workers / training - 1
        return f"{share:.0%} beyond training: {wall:.0f} s{beside} for {training:.0f} s in the loops of {len(new)} runs"
