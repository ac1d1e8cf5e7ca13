"""The stages of a comparison by time, one after the other: first leaderboard, settings, full runs."""

from __future__ import annotations

from dataclasses import replace

from weft.studies.compare.candidates import Candidate
from weft.studies.compare.timed.clock import Gate
from weft.studies.compare.timed.full_runs import full_runs, joined, keep_fitted
from weft.studies.compare.timed.layout import Stages
from weft.studies.compare.timed.members import add_finetuned, add_probes, measure_paces, time_baseline
from weft.studies.compare.timed.plan import adapted, announce, early_fixed, early_room, planned, shortened
from weft.studies.compare.timed.session import Session
from weft.studies.compare.timed.trials import choose_settings
from weft.studies.engine.study import Job, Study

EARLY_END = 0.5  # of the time, after which a run for the first leaderboard is left


def run_stages(session: Session) -> Study:
    """All stages, as far as there is time for them; the study with the runs that its leaderboard is made of, none where
    that of an earlier session stays."""
    if session.before and session.state.stages is None:
        session.tell("there was no time to try settings before: sizes and rates are chosen anew")
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
    if new and again:
        further_runs(session, stages, new)
    elif new:
        first_runs(session, stages, new)
    add_finetuned(session, stages)
    stages = stages if again else adapted(session, stages)
    if new := [candidate for candidate in session.learnt if candidate.name not in session.state.chosen]:
        choose_settings(session, stages, new)
    full_runs(session, shortened(session, stages))
    if session.leads or not session.study.jobs:
        return session.study
    session.tell("the leaderboard stays as it was: there was no time for two seeds of longer runs; give more --time")
    return replace(session.study, jobs=[])


def first_runs(session: Session, stages: Stages, candidates: list[Candidate]) -> None:
    """Every candidate once, in a short run: the first leaderboard. What no seed changes comes with the full runs if it
    would make that late, or does."""
    fixed, everyone = early_fixed(session), session.study.candidates
    later = [name for name in session.fixed() if name not in fixed]
    clock = session.clock
    gate = Gate(clock, session.runs.predicted, EARLY_END * clock.total, fixed, clock.spent() + early_room(session))
    first, others = short_runs(session, stages, candidates), joined(fixed)
    jobs = [*others, *first] if session.workers > 1 else [*first, *others]  # on one worker networks must not wait
    session.study = replace(session.study, candidates=[c for c in everyone if c.name not in later])
    session.lead(jobs, stages.first, seeds=0)
    late = session.run(jobs, "first leaderboard", gate)
    later += [name for name in fixed if name in {job.candidate for job in late}]
    left = left_out(session, [job for job in late if job.candidate not in fixed])
    session.without(left, f"has ended a first run in half of the time; {more_time(session)}")
    everyone = [candidate for candidate in everyone if candidate.name not in left]
    session.study = replace(session.study, candidates=[c for c in everyone if c.name not in later])
    session.lead([job for job in jobs if job.candidate not in {*left, *later}], stages.first, seeds=0)
    keep_fitted(session, fixed)
    with session.kept_in_reserve():
        session.finish(session.study)
        session.show_so_far()
    session.tell("first leaderboard: " + ", ".join(c.name for c in session.study.candidates))
    session.study = replace(session.study, candidates=everyone)
    if later:
        session.tell(f"with the full runs: {', '.join(later)}, which would have made it late")


def more_time(session: Session) -> str:
    """What to do where there was too little."""
    return f"give more than --time {session.asked.time}: what is finished is kept"


def further_runs(session: Session, stages: Stages, candidates: list[Candidate]) -> None:
    """A short run of each candidate that there was no time for before; the leaderboard stays as it is."""
    session.without(left_out(session, session.run(short_runs(session, stages, candidates), "further candidates")))


def short_runs(session: Session, stages: Stages, candidates: list[Candidate]) -> list[Job]:
    """A run of each network at its usual settings, the heaviest first."""
    heaviest = sorted(candidates, key=lambda candidate: -candidate.count.get("macs", 0))
    return [job for c in heaviest for job in session.runs.seed(session.usual(c), 0, stages.first)]


def left_out(session: Session, jobs: list[Job]) -> set[str]:
    """The candidates of runs that there was no time for, each with a sentence."""
    names = {job.candidate for job in jobs}
    for name in sorted(names):
        session.tell(f"left out: {name}: there is no time for it")
    return names
