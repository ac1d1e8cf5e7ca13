"""The stages of a comparison by time, one after the other: first leaderboard, settings, full runs."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from statistics import median

from weft.studies.compare.candidates import Candidate
from weft.studies.compare.run_configs import SHARES
from weft.studies.compare.timed.layout import Stages
from weft.studies.compare.timed.members import add_finetuned, add_probes, measure_paces, time_baseline
from weft.studies.compare.timed.plan import adapted, announce, planned, shortened
from weft.studies.compare.timed.session import Session
from weft.studies.compare.timed.state import Setting
from weft.studies.compare.timed.trials import choose_settings
from weft.studies.engine.study import Job, Study

EARLY_END = 0.5  # of the time, after which a run for the first leaderboard is left
MARGIN = 1.6  # of what mistakes and report took the first time, for the last
MOST_SEEDS = 20
MOST_LATE = 0.5  # of the networks, whose full runs may be late, before the leaderboard stays that of short runs


def run_stages(session: Session) -> Study:
    """All stages, as far as there is time for them; the study with the runs that its leaderboard is made of."""
    add_probes(session)
    for setting in session.state.chosen.values():
        if setting.candidate.start:
            session.add(setting.candidate)
    time_baseline(session)
    measure_paces(session, [session.usual(candidate) for candidate in session.learnt])
    stages = planned(session)
    announce(session, stages)
    again = bool(session.state.chosen)  # then those alone are new that there was no time for before
    new = [candidate for candidate in session.learnt if candidate.name not in session.state.chosen]
    if new:
        first_runs(session, stages, new, again)
    add_finetuned(session, stages)
    stages = stages if again else adapted(session, stages)
    if new := [candidate for candidate in session.learnt if candidate.name not in session.state.chosen]:
        choose_settings(session, stages, new)
    full_runs(session, shortened(session, stages))
    return session.study


def first_runs(session: Session, stages: Stages, candidates: list[Candidate], again: bool) -> None:
    """Every candidate once, in a short run: the first leaderboard, unless there is one of an earlier session."""
    heaviest = sorted(candidates, key=lambda candidate: -candidate.count.get("macs", 0))
    settings = [session.usual(candidate) for candidate in heaviest]
    settings += [Setting(candidate, 0.0) for candidate in session.study.candidates if candidate.fixed and not again]
    jobs = [job for setting in settings for job in session.runs.seed(setting, 0, stages.first)]
    jobs = sorted(jobs, key=lambda job: -session.runs.predicted(job))
    if not again:
        session.lead(jobs, stages.first)
    left = {job.candidate for job in session.run(jobs, "first leaderboard", 1.0 if again else EARLY_END)}
    for name in sorted(left):
        session.tell(f"left out: {name}: there is no time for it")
    if not again:
        session.lead([job for job in jobs if job.candidate not in left], stages.first)
    session.without(left)
    if again:
        return
    began = time.perf_counter()
    session.finish(session.study)
    session.show_so_far()
    session.tell("first leaderboard: " + ", ".join(c.name for c in session.study.candidates))
    session.clock.reserve = max(session.clock.reserve, MARGIN * (time.perf_counter() - began))


def full_runs(session: Session, stages: Stages) -> None:
    """The settings that won, seed by seed; then further seeds of all, at last of those that fit."""
    chosen = {name: setting for name, setting in session.state.chosen.items() if name in session.names}
    candidates = [chosen[c.name].candidate if c.name in chosen else c for c in session.study.candidates]
    fixed = fixed_runs(session, candidates)
    done: list[Job] = []
    limited = session.asked.amount is not None or session.asked.learning_curve
    for seed in range(session.asked.seeds if limited else MOST_SEEDS):
        jobs = [
            job for setting in in_order(session, chosen, seed) for job in session.runs.seed(setting, seed, stages.full)
        ]
        if seed >= stages.seeds and not any(admits(session, job) or session.study.done(job) for job in jobs):
            break
        left = session.run(jobs, f"seed {seed}")
        late = {job.candidate for job in left}
        done += [job for job in jobs if job.candidate not in late]
        if seed == 0 and late:
            candidates = without_late(session, candidates, late, len(chosen))
            if not candidates:
                return
        session.study = replace(session.study, candidates=candidates)
        if not left:
            session.tell(f"seed {seed}: a full run of every candidate is there")
        session.lead(done + fixed, stages.full)
        if seed < stages.seeds:
            session.show_so_far()
        if left:
            return
    if session.asked.learning_curve:
        learning_curve(session, stages, chosen, done + fixed)


def fixed_runs(session: Session, candidates: list[Candidate]) -> list[Job]:
    """The runs of candidates that no seed changes; with more time they may learn from more rows.

    Those that fail stay among them, so that the comparison lacks them in the end.
    """
    jobs = [job for c in candidates if c.fixed for job in session.runs.seed(Setting(c, 0.0), 0, 0.0)]
    undone = any(not session.study.done(job) for job in jobs)
    late = {job.candidate for job in session.run(jobs, "baselines")} if undone else set()
    for name in sorted(late):
        session.tell(f"left out: {name}: there is no time for it; the same command with more --time")
    return [job for job in jobs if job.candidate not in late]


def without_late(session: Session, candidates: list[Candidate], late: set[str], networks: int) -> list[Candidate]:
    """Who stays on the leaderboard of full runs where some did not end in time; nobody where most did not."""
    if len(late) > MOST_LATE * networks:
        session.tell("time is up before every candidate has had a full run: the leaderboard is that of short runs")
        return []
    names = ", ".join(sorted(late))
    session.tell(f"left out of the leaderboard: {names}: no time for a full run; the same command with more --time")
    return [candidate for candidate in candidates if candidate.name not in late]


def learning_curve(session: Session, stages: Stages, chosen: dict[str, Setting], whole: list[Job]) -> None:
    """The same networks on parts of the rows."""
    parts = [
        job
        for share in SHARES
        for seed in range(stages.seeds)
        for setting in chosen.values()
        if share < setting.candidate.share  # a trained network may learn from fewer rows at most
        for job in session.runs.seed(setting, seed, stages.full, share)
    ]
    undone = {(job.candidate, job.seed) for job in session.run(parts, "learning curve")}
    session.lead(whole + [job for job in parts if (job.candidate, job.seed) not in undone], stages.full)


def admits(session: Session, job: Job) -> bool:
    """Whether there is time for a run."""
    return session.asked.time is None or session.gate().admits(job)


def in_order(session: Session, chosen: dict[str, Setting], seed: int) -> list[Setting]:
    """For the seeds that were planned all alike; later ones begin with the candidates that lead on validation."""
    if seed == 0:
        return sorted(chosen.values(), key=lambda setting: -setting.candidate.count.get("macs", 0))
    scores: dict[str, list[float]] = {name: [] for name in chosen}
    for job in session.study.jobs:
        if job.candidate in scores:
            scores[job.candidate].append(session.validation(job))
    return sorted(chosen.values(), key=lambda s: -median(scores[s.candidate.name] or [-math.inf]))
