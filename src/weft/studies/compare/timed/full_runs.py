"""The last stage of a comparison by time: full runs of the settings that won, seed by seed, while time is left."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from statistics import median

from weft.studies.compare.candidates import Candidate
from weft.studies.compare.run_configs import SHARES
from weft.studies.compare.timed.layout import Stages
from weft.studies.compare.timed.plan import MOST_LATE
from weft.studies.compare.timed.session import Session
from weft.studies.compare.timed.state import Setting
from weft.studies.engine.study import Job

MOST_SEEDS = 20

Fixed = dict[str, list[Job]]  # by candidate: the runs that no seed changes


def full_runs(session: Session, stages: Stages) -> None:
    """The settings that won, seed by seed, and their learning curves; then further seeds of all, at last of those that
    fit."""
    chosen = {name: setting for name, setting in session.state.chosen.items() if name in session.names}
    candidates = [chosen[c.name].candidate if c.name in chosen else c for c in session.study.candidates]
    fixed, done, parts = session.fixed(), list[Job](), list[Job]()
    for seed in range(stages.seeds if session.asked.amount is not None else MOST_SEEDS):
        jobs = [
            job for setting in in_order(session, chosen, seed) for job in session.runs.seed(setting, seed, stages.full)
        ]
        if seed >= stages.seeds and not any(session.admits(job) for job in jobs):
            break
        beside = [job for job in joined(fixed) if not session.study.done(job)] if seed == 0 else []
        undone = [*beside, *(job for job in jobs if not session.study.done(job))]
        left = session.run([*beside, *jobs], f"seed {seed}")
        late = {job.candidate for job in left}
        done += [job for job in jobs if job.candidate not in late]
        if seed == 0:
            fixed = fixed_in_time(session, fixed, late)
            candidates = without_late(session, candidates, late & chosen.keys(), len(chosen))
            if not candidates:
                stay_short(session, stages, fixed)
                return
            candidates = as_fitted(session, candidates, fixed)
        session.study = replace(session.study, candidates=candidates)
        if not late & chosen.keys():
            session.tell(f"seed {seed}: a full run of every candidate is there")
        session.lead(done + joined(fixed) + parts, stages.full)
        if len(left) < len(undone) and (seed < stages.seeds or session.has_time()):
            if seed == 0 and session.has_time():  # speeds of networks that are slow in use take their time
                session.finish(session.study)
            session.show_so_far()
        last = bool(late & chosen.keys())
        if session.asked.learning_curve:
            there = {c.name: chosen[c.name] for c in candidates if c.name in chosen}
            parts += learning_curve(session, stages, there, seeds_of_curve(stages, seed, last))
        if last:
            break


def joined(fixed: Fixed) -> list[Job]:
    return [job for jobs in fixed.values() for job in jobs]


def keep_fitted(session: Session, fixed: Fixed) -> None:
    """Remember from which rows each candidate that no seed changes has learnt."""
    candidates = {candidate.name: candidate for candidate in session.study.candidates}
    for name, jobs in fixed.items():
        if name in candidates and all(session.study.finished(job) for job in jobs):
            share = jobs[0].config.reading.train_fraction
            session.state.fitted[name] = replace(candidates[name], share=share)
    session.save()


def fixed_in_time(session: Session, fixed: Fixed, late: set[str]) -> Fixed:
    """The runs that no seed changes, less those that are late: in their place what was learnt from fewer rows before.

    Those that fail stay among them, so that the comparison lacks them in the end.
    """
    keep_fitted(session, fixed)
    found: Fixed = {}
    for name, jobs in fixed.items():
        before = session.state.fitted.get(name)
        if name not in late:
            found[name] = jobs
        elif before is not None:
            found[name] = session.runs.seed(Setting(before, 0.0), 0, 0.0)
            session.tell(f"{name} has learnt from {before.share:.0%} of the rows, as before: there is no time for more")
        else:
            session.tell(f"left out: {name}: there is no time for it; the same command with more --time")
    return found


def as_fitted(session: Session, candidates: list[Candidate], fixed: Fixed) -> list[Candidate]:
    """The candidates, trained networks as their features were read, less what no seed changes and is left out."""
    fitted = session.state.fitted
    there = [candidate for candidate in candidates if not candidate.fixed or candidate.name in fixed]
    return [fitted.get(c.name, c) if c.fixed and c.start else c for c in there]


def without_late(session: Session, candidates: list[Candidate], late: set[str], networks: int) -> list[Candidate]:
    """Who stays on the leaderboard of full runs where some did not end in time; nobody where most did not."""
    if not late:
        return candidates
    if len(late) > MOST_LATE * networks:
        session.tell("time is up before every candidate has had a full run: the leaderboard is that of short runs")
        return []
    names = ", ".join(sorted(late))
    session.tell(f"left out of the leaderboard: {names}: no time for a full run; the same command with more --time")
    return [candidate for candidate in candidates if candidate.name not in late]


def stay_short(session: Session, stages: Stages, fixed: Fixed) -> None:
    """Keep the leaderboard of short runs, with what no seed changes; one of an earlier session stays as it was."""
    if not session.study.jobs:
        return
    known = {job.candidate for job in session.study.jobs}
    jobs = session.study.jobs + [job for job in joined(fixed) if job.candidate not in known]
    known |= fixed.keys()
    session.study = replace(session.study, candidates=[c for c in session.study.candidates if c.name in known])
    session.lead(jobs, stages.first)


def seeds_of_curve(stages: Stages, seed: int, last: bool) -> Collection[int]:
    """The seeds on parts of the rows whose turn it is after the full runs of a seed, `last` if there is no time for
    others: those of the plan after all of its full runs, further ones each after its own."""
    if seed < stages.seeds:
        return range(stages.seeds) if last or seed == stages.seeds - 1 else ()
    return () if last else (seed,)


def learning_curve(session: Session, stages: Stages, chosen: dict[str, Setting], seeds: Collection[int]) -> list[Job]:
    """The same networks on parts of the rows; the runs that were done, which are on the leaderboard now."""
    parts = [
        job
        for share in SHARES
        for seed in seeds
        for setting in chosen.values()
        if share < setting.candidate.share  # a trained network may learn from fewer rows at most
        for job in session.runs.seed(setting, seed, stages.full, share)
    ]
    undone = [job for job in parts if not session.study.done(job)]
    left = session.run(parts, "learning curve") if parts else []
    late = {part_of(job) for job in left}
    found = [job for job in parts if part_of(job) not in late]
    session.lead(session.study.jobs + found, stages.full)
    if len(left) < len(undone) and session.has_time():
        session.show_so_far()
    return found


def part_of(job: Job) -> tuple[str, int, float]:
    """Which point of a learning curve a run is for; of several folds, all are needed."""
    return job.candidate, job.seed, job.config.reading.train_fraction


def in_order(session: Session, chosen: dict[str, Setting], seed: int) -> list[Setting]:
    """For the seeds that were planned all alike; later ones begin with the candidates that lead on validation."""
    if seed == 0:
        return sorted(chosen.values(), key=lambda setting: -setting.candidate.count.get("macs", 0))
    scores: dict[str, list[float]] = {name: [] for name in chosen}
    for job in session.study.jobs:
        if job.candidate in scores:
            scores[job.candidate].append(session.validation(job))
    return sorted(chosen.values(), key=lambda s: -median(scores[s.candidate.name] or [-math.inf]))
