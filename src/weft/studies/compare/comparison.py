"""`weft compare`: which network for this data, at equal budget? From a question to a folder of finished runs.

The parent process holds no torch: workers look at the data, time steps, train, and measure.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from weft.data.config import EMBEDDED
from weft.disk import Damaged
from weft.errors import WeftError
from weft.imported import is_import_string
from weft.studies.compare.candidates import Candidate, Facts
from weft.studies.compare.config import ComparisonConfig, decided
from weft.studies.compare.progress import Watch, unwatched
from weft.studies.compare.rate_search import best_rates, rates, trial
from weft.studies.compare.run_configs import BATCH, SHARES, largest_batch, on_part, run_config, steps_of, with_batch
from weft.studies.compare.timed.clock import Clock
from weft.studies.compare.timed.session import Finish, Session
from weft.studies.compare.timed.sizes import fitting_amount, looking_limit, require_time_to_decode, with_small_images
from weft.studies.compare.timed.stages import run_stages
from weft.studies.compare.timed.state import State, anew, judged_rows, kept_state, read_state
from weft.studies.compare.trained import trained_here
from weft.studies.engine import tasks
from weft.studies.engine.folder_lock import driving
from weft.studies.engine.place import open_pool
from weft.studies.engine.runner import Pool, Say, choose_schedule, run_jobs
from weft.studies.engine.study import Job, Study, read_study
from weft.studies.engine.worker_time import noting_worker_time
from weft.studies.results.error_examples import keep_mistakes
from weft.terminal import how_many
from weft.training.config import seconds
from weft.training.storage.run_folder import RunFolder

TRIALS = 3
NONE: Mapping[str, str] = MappingProxyType({})
LIGHT = 1e8  # multiply-adds of a batch, up to which several threads gain nothing and trying it takes seconds
FOLDS, FEW_ROWS, FOLDS_FROM = 5, 1500, 180.0  # of cross-validation; rows below, and seconds from which on it is done


def compare(
    asked: ComparisonConfig,
    folder: Path,
    command: str,
    say: Say,
    watch: Watch = unwatched,
    began: float | None = None,
) -> Study:
    """Run a comparison in `folder`, or go on with it; everything is on the disk when this returns.

    `began` is when the command was called (perf_counter), by default now.
    """
    overhead = Overhead(folder, began)
    asked = decided(asked)
    by_time = asked.time is not None or asked.match == "time"
    if asked.reading.folds is not None and not by_time:
        raise WeftError("--folds cross-validates where time is held equal; add --time, or leave out --folds")
    if asked.start and not by_time:
        raise WeftError("--start adds trained networks where time is held equal; add --time, or leave out --start")

    session: Session | None = None

    def finish(study: Study) -> None:
        if not by_time or pool.warm():
            measure_speeds(study, pool, say, session.time_to_measure() if session else None)
        if by_time and not pool.warm():  # a new process would load torch and open the data first, after the end
            say("mistakes, or speeds in use, are not measured now: no process is ready for it in time")
            return
        try:
            keep_mistakes(study, pool)
        except WeftError as error:
            say(f"the report shows no mistakes: {error}")

    with driving(folder), pool_for(asked, folder, by_time, say) as pool:
        before = earlier(folder, say)
        prepared = prepare(asked, folder, pool, say, by_time, before)
        asked = prepared.asked
        study = plan_comparison(asked, folder, command, prepared.facts, prepared.candidates)
        study = replace(study, overhead=before.get("overhead", ""))
        for note in prepared.facts.notes:
            say(note)
        with noting_worker_time(folder, overhead.started, lambda: len(pool.workers)):
            if by_time:
                session = session_of(prepared, study, pool, overhead.started, say, watch, finish)
                with session.noting_time():
                    study = run_stages(session)
            else:
                study = by_size(asked, study, pool, say, watch)
            if study.jobs:  # else the leaderboard of an earlier session stays as it was
                finish(study)
        spent = overhead.sentence(len(pool.workers))
        if spent:
            say(spent)
            study = replace(study, overhead=spent)
        if study.jobs:
            study = replace(study, spent=session.spent) if session else study
            study.save()
    return study


def pool_for(asked: ComparisonConfig, folder: Path, by_time: bool, say: Say) -> Pool:
    """The workers of a comparison, here or on a cluster."""
    return open_pool(
        asked.on, folder, say, asked.jobs, asked.execution.threads, asked.execution.device == "cuda", by_time
    )


@dataclass(frozen=True)
class Prepared:
    """A question with all that follows from its data."""

    asked: ComparisonConfig
    of_trained: ComparisonConfig
    """as trained networks are asked, which take images of another side"""
    natural_side: int | None
    """px of photographs that were made small"""
    facts: Facts
    candidates: list[Candidate]
    rows_given: bool
    """whether the test rows that runs are judged by were asked for"""


def prepare(
    asked: ComparisonConfig, folder: Path, pool: Pool, say: Say, by_time: bool, before: dict[str, Any]
) -> Prepared:
    """Look at the data: rows that runs are judged by, image side, folds, batch, and the candidates at their sizes.

    `before` is what study.json says of an earlier session in the folder.
    """
    rows_given = asked.reading.test_rows is not None
    asked = judged_rows(asked, folder) if by_time else asked
    own = asked.transform
    asked, side = with_small_images(asked, pool, say) if by_time else (asked, None)
    if by_time:
        require_time_to_decode(asked, pool)
    config, limit = run_config(asked, None, 0, 1), looking_limit(asked)
    facts: Facts = pool.everyone(tasks.look, config, within=limit)  # so that none waits when runs begin
    if by_time and (folds := None if trained_here(asked, facts) else fitting_folds(asked, facts, folder)):
        asked, facts = folded(asked, facts, folds, pool, say)
    require_same_source(before, facts, folder, say)
    asked, notes = with_batch(asked, facts.rows, largest_batch(facts, by_time)), list(facts.notes)
    if by_time and (why := anew(folder, asked, facts.fingerprint)) and is_known(before, facts):
        say(why)
    pool.threads = max(1, pool.cores // len(pool.workers))
    amount = asked.count() or (fitting_amount(asked, facts, pool, folder) if by_time else None)
    match = asked.match if asked.match != "time" else "none" if amount is None else "params"
    wanted = facts, asked.models, match or "none", amount, asked.controls, asked.baseline, by_time
    # Sizes are those of networks, and torch is there.
    candidates, left_out = pool.first(tasks.candidates, *wanted, within=limit)
    notes += left_out
    return Prepared(asked, replace(asked, transform=own), side, replace(facts, notes=notes), candidates, rows_given)


def session_of(
    prepared: Prepared,
    study: Study,
    pool: Pool,
    started: float,
    say: Say,
    watch: Watch,
    finish: Finish,
) -> Session:
    """A session of a comparison by time that goes on from what an earlier one kept."""
    asked, trained, side = prepared.asked, prepared.of_trained, prepared.natural_side
    state = read_state(study.folder, asked, prepared.facts.fingerprint)
    state.judged = asked.reading.validation_rows, asked.reading.test_rows
    state.rows_given = prepared.rows_given
    clock = Clock(seconds(asked.time or "1d"), state.spent, started)
    study = replace(study, jobs=[], story=state.story, question=f"{state.question}-{state.judged[1]}")
    return Session(asked, trained, side, study, pool, state, clock, say, watch, finish, leaderboard_of(study, state))


def leaderboard_of(study: Study, state: State) -> int:
    """Seeds of the leaderboard in study.json, none where it answers another question."""
    with suppress(Damaged):
        there = (read_study(study.folder) or {}).get("question")
        return state.led if there in (None, study.question) else 0
    return 0


def fitting_folds(asked: ComparisonConfig, facts: Facts, folder: Path) -> int | None:
    """Folds of cross-validation for a small set without a test split, where there is time for them, or was before in
    the folder: one held-out part of it would tell little."""
    small = facts.rows < FEW_ROWS * (1 - asked.reading.test_fraction) * (1 - asked.reading.val_fraction)
    if asked.reading.folds is not None or not facts.held_out or not small:
        return None
    timely = asked.time is None or seconds(asked.time) >= FOLDS_FROM
    cut = replace(asked, reading=replace(asked.reading, folds=FOLDS))
    return FOLDS if timely or kept_state(folder, cut, facts.fingerprint) is not None else None


def folded(asked: ComparisonConfig, facts: Facts, folds: int, pool: Pool, say: Say) -> tuple[ComparisonConfig, Facts]:
    """The question with its rows cut into folds, unless they cannot be: classes of few rows, or a streamed source."""
    cut = replace(asked, reading=replace(asked.reading, folds=folds, fold=folds - 1))  # which makes all of the cuts
    try:
        pool.first(tasks.look, run_config(cut, None, 0, 1), within=looking_limit(asked))
    except WeftError as error:
        say(f"no cross-validation: {error}")
        return asked, facts
    cut = replace(asked, reading=replace(asked.reading, folds=folds))
    return cut, pool.first(tasks.look, run_config(cut, None, 0, 1))


def by_size(
    asked: ComparisonConfig, study: Study, pool: Pool, say: Say, watch: Watch, carried: Mapping[str, str] = NONE
) -> Study:
    """All runs of a comparison at equal size, after trials of rates where they were asked for; `carried` names, for
    candidates without trials, those whose rates they have."""
    study.save()
    candidates, runs = how_many(len(study.candidates), "candidate"), how_many(len(study.jobs), "run")
    say(f"{candidates}, {study.budget}; {runs} in {study.folder}")
    if any(not study.done(job) for job in study.jobs):
        schedule(pool, asked, study, say)
    study = tuned(asked, study, pool, say, watch, carried)
    watch(study, study.jobs, "candidate", None)
    run_jobs(study, pool, study.jobs, say)
    return study


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


def is_known(before: dict[str, Any], facts: Facts) -> bool:
    """Whether an earlier session in the folder read the same data."""
    return bool(before.get("facts", {}).get("fingerprint", "") == facts.fingerprint)


def require_same_source(before: dict[str, Any], facts: Facts, folder: Path, say: Say) -> None:
    """Refuse the folder of a comparison on other data, whose report would be lost; by another path it is the same, and
    where its content has changed it is compared anew."""
    stored = before.get("facts", {})
    if not stored or is_known(before, facts):
        return
    if stored["name"] != facts.name:
        raise WeftError(
            f"{folder} holds a comparison on {stored['name']}, not on {facts.name}; choose another --output"
        )
    say(f"{facts.name} has changed since the last session: nothing of that can be used, and the report will be anew")


def schedule(pool: Pool, asked: ComparisonConfig, study: Study, say: Say) -> None:
    """On a GPU runs never share the machine; else the clock decides."""
    if asked.jobs is not None or len(pool.workers) == 1:
        pool.threads = max(1, pool.cores // len(pool.workers))
        return
    heaviest = sorted(study.candidates, key=lambda candidate: -candidate.count.get("macs", 0))
    batch = asked.optimisation.batch_size or BATCH
    if heaviest[0].count.get("macs", math.inf) * batch <= LIGHT and len(heaviest) > 1:
        say(f"schedule: {len(pool.workers)} side by side (networks are small)")
        return
    choose_schedule(pool, [run_config(asked, candidate, 0, study.facts.rows) for candidate in heaviest], say)


def plan_comparison(
    asked: ComparisonConfig, folder: Path, command: str, facts: Facts, candidates: list[Candidate]
) -> Study:
    """All runs, seed by seed and the heaviest first, so that early results cover all candidates."""
    ordered = sorted(candidates, key=lambda candidate: -candidate.count.get("macs", 0))
    shares = (1.0, *SHARES) if asked.learning_curve else (1.0,)
    rows, content = facts.rows, facts.fingerprint
    jobs = [
        Job(candidate.name, on_part(run_config(asked, candidate, seed, rows), share, rows), content)
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
    budget = budget_words(asked, candidates) + (f", {steps_words(asked, facts.rows)}" if asked.steps else "")
    return Study(folder, title, facts, candidates, jobs, asked.match or "none", budget, command, reuse=asked.reuse)


def steps_words(asked: ComparisonConfig, rows: int) -> str:
    """How long runs are, for a heading: steps, and passes over the training rows."""
    steps = steps_of(asked, rows)
    return f"{steps:,} steps each ({steps * (asked.optimisation.batch_size or BATCH) / rows:.2g} epochs)"


def budget_words(asked: ComparisonConfig, candidates: list[Candidate]) -> str:
    """The budget for a heading."""
    if asked.match == "time":
        return "equal training time"
    if asked.match == "none":
        return "each at its named size"
    match = asked.match or "params"
    sized = [candidate for candidate in candidates if not is_import_string(candidate.model)]  # others are as they are
    counts = [candidate.count[match] for candidate in sized if match in candidate.count]
    words = {"params": "parameters", "macs": "multiply-adds"}[match]
    if not counts:
        return "each as it is"
    return f"{sum(counts) / len(counts):,.0f} {words} each, within 3 %" if asked.models != "sizes" else f"three {words}"


def tuned(
    asked: ComparisonConfig, study: Study, pool: Pool, say: Say, watch: Watch, carried: Mapping[str, str] = NONE
) -> Study:
    """The study with the learning rate of each candidate that did best on the validation split, of as many for each."""
    trials = trials_of(asked)
    if trials == 0:
        return study
    if asked.optimisation.lr is not None:
        raise WeftError("--lr and --trials contradict each other; use --trials 0 with a given rate")
    tried = trial_jobs(asked, study, carried)
    whose = "the smallest size of every family, whose best the larger ones have" if carried else "every candidate"
    say(f"{trials} learning rates for {whose}, judged on the validation split")
    watch(study, tried, "rates", None)
    run_jobs(study, pool, tried, say)
    best = best_rates(study, tried)
    best |= {name: best[tried_one] for name, tried_one in carried.items() if tried_one in best}
    jobs = [
        replace(job, config=replace(job.config, optimisation=replace(job.config.optimisation, lr=best[job.candidate])))
        if job.candidate in best
        else job
        for job in study.jobs
    ]
    study = replace(study, jobs=jobs, notes=[f"{trials} learning rates were tried for {whose}"], trials=tried)
    study.save()
    return study


def trial_jobs(asked: ComparisonConfig, study: Study, carried: Mapping[str, str] = NONE) -> list[Job]:
    """Short runs at several rates, as many for every candidate that learns and has no rate carried to it."""
    learnt = {candidate.name for candidate in study.candidates if not candidate.fixed} - carried.keys()
    return [
        Job(job.candidate, trial(job.labelled, rate), job.fingerprint)
        for job in study.jobs
        if job.seed == 0
        and job.config.reading.train_fraction == asked.reading.train_fraction
        and job.candidate in learnt
        for rate in rates(job.config.optimisation.optimiser, job.config.model, trials_of(asked))
    ]


def measure_speeds(study: Study, pool: Pool, say: Say, within: float | None = None) -> None:
    """Speed and latency of one network of each candidate, on one thread, in so many seconds at most; nothing else runs
    but others of these."""
    first: dict[str, Path] = {}
    fixed = {candidate.name for candidate in study.candidates if candidate.fixed}
    for job in study.jobs:
        if job.candidate not in first and job.candidate not in fixed and study.finished(job):
            first[job.candidate] = study.run_folder(job).path
    for trouble in pool.spread(tasks.inference_speed, list(first.values()), within):
        say(f"a speed in use is missing: {trouble}")


class Overhead:
    """How much of a session's time went into training loops, how much into testing what they made, and so how much
    beyond: start-up, probes, measuring, idle workers."""

    def __init__(self, folder: Path, began: float | None = None) -> None:
        self.folder = folder
        self.started = time.perf_counter() if began is None else began
        self.before = {path.parent for path in folder.glob("runs/*/run.yaml")}

    def sentence(self, workers: int) -> str:
        """The share in words; nothing where no run was trained from beginning to end this time."""
        wall = time.perf_counter() - self.started
        new = [path.parent for path in self.folder.glob("runs/*/record.json") if path.parent not in self.before]
        records = [RunFolder(path).record() or {} for path in new]
        training, testing = (
            sum(float(record.get(name, 0.0)) for record in records) for name in ("wall_seconds", "testing_seconds")
        )
        if training <= 0:
            return ""
        beside = f" × {workers} side by side" if workers > 1 else ""
        share, tested = (min(1.0, each / wall / workers) for each in (training, testing))
        runs = how_many(len(new), "run")
        return f"{share:.0%} of {wall:.0f} s{beside} went into training ({runs}), {tested:.0%} into testing"
