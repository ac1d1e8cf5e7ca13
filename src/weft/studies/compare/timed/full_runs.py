"""The last stage of a comparison by time: full runs of the settings that won, seed by seed, while time is left."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from statistics import median, median_low

from weft.studies.compare.candidates import Candidate
from weft.studies.compare.run_configs import SHARES
from weft.studies.compare.timed.clock import Gate
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
    board = Board(session, stages, chosen)
    if not board.begin():
        return
    most, seed = stages.seeds if session.asked.amount is not None else max(MOST_SEEDS, stages.seeds), 1
    while seed < most and not board.full:
        jobs = at_once(board, seed, most)
        if seed >= stages.seeds and not any(session.admits(job) for job in jobs[seed]):
            break
        together = [job for several in jobs.values() for job in several]
        undone = [job for job in together if not session.study.done(job)]
        gate = SeedGate(session.clock, session.runs.predicted, board=board, jobs=jobs)
        board.take_in(jobs)
        left = session.run(together, in_words(jobs), gate)
        board.end(jobs, left, fresh=len(left) < len(undone))
        if session.asked.learning_curve:
            board.add_curve(range(seed, max(jobs) + 1))
        seed = max(jobs) + 1
    rest = board.begun(range(seed, most))
    board.end(rest, [job for several in rest.values() for job in several if not session.study.done(job)], fresh=False)


def at_once(board: Board, first: int, most: int) -> dict[int, list[Job]]:
    """The runs of the seeds from `first` on that follow each other without a pause, a worker that is done with one
    beginning the next: those that there is time for, and one more for candidates that take less. A learning curve comes
    after the seeds of the plan, and after each further one."""
    session, stages = board.session, board.stages
    curve, time = session.asked.learning_curve, session.clock.left() * session.workers
    found: dict[int, list[Job]] = {}
    for seed in range(first, most):
        found[seed] = board.jobs_of(seed)
        alone = session.asked.time is None or (curve and seed >= stages.seeds - 1)
        if alone or time < 0:
            break
        time -= session.predicted(found[seed]) * session.clock.slowness()
    return found


def in_words(jobs: Collection[int]) -> str:
    first, last = min(jobs), max(jobs)
    return f"seed {first}" if first == last else f"seeds {first} to {last}"


@dataclass
class Board:
    """The leaderboard of full runs, which grows by a seed whenever all runs of it are there."""

    session: Session
    stages: Stages
    chosen: dict[str, Setting]
    done: list[Job] = field(default_factory=list)
    fixed: Fixed = field(default_factory=dict)
    parts: list[Job] = field(default_factory=list)
    """runs on parts of the rows"""
    told: set[int] = field(default_factory=set)
    """seeds that are on it"""
    full: bool = False
    """whether there is no time for more"""

    @property
    def seeds(self) -> int:
        """That most of its candidates have."""
        seeds = [{job.seed for job in self.done if job.candidate == name} for name in self.chosen]
        return median_low(map(len, seeds or [set()]))

    def begun(self, seeds: range) -> dict[int, list[Job]]:
        """The runs of those seeds that some candidates have: an earlier session had time for these."""
        found = {seed: self.jobs_of(seed) for seed in seeds}
        return {seed: jobs for seed, jobs in found.items() if any(map(self.session.study.done, jobs))}

    def jobs_of(self, seed: int) -> list[Job]:
        settings = in_order(self.session, self.chosen, seed)
        return [job for setting in settings for job in self.session.runs.seed(setting, seed, self.stages.full)]

    def begin(self) -> bool:
        """The first seed, with what no seed changes; whether there is a leaderboard of full runs then."""
        session, jobs = self.session, self.jobs_of(0)
        fixed = session.fixed()
        beside = [job for job in joined(fixed) if not session.study.done(job)]
        undone = [*beside, *(job for job in jobs if not session.study.done(job))]
        left = session.run([*beside, *jobs], "seed 0")
        late = {job.candidate for job in left}
        candidates = [self.chosen[c.name].candidate if c.name in self.chosen else c for c in session.study.candidates]
        self.fixed = fixed_in_time(session, fixed, late)
        candidates = without_late(session, candidates, late & self.chosen.keys(), len(self.chosen))
        if not candidates:
            stay_short(session, self.stages, self.fixed)
            return False
        session.study = replace(session.study, candidates=as_fitted(session, candidates, self.fixed))
        self.chosen = {name: setting for name, setting in self.chosen.items() if name not in late}
        self.add(0, jobs, late)
        if len(left) < len(undone):
            if session.has_time():  # speeds of networks that are slow in use take their time
                session.finish(session.study)
            session.show_so_far()
        if session.asked.learning_curve:
            self.add_curve(range(1))
        return True

    def add(self, seed: int, jobs: list[Job], late: Collection[str] = ()) -> None:
        """Put the runs of a seed on it, less those of candidates that are late."""
        self.told.add(seed)
        self.done += [job for job in jobs if job.candidate not in late]
        if late & self.chosen.keys():
            self.full = True
        elif all(self.session.study.done(job) for job in jobs):
            self.session.tell(f"seed {seed}: a full run of every candidate is there")
        self.session.lead(self.done + joined(self.fixed) + self.parts, self.stages.full, self.seeds)
        self.session.save()

    def take_in(self, jobs: dict[int, list[Job]]) -> list[int]:
        """Put on it the seeds whose runs have all ended, those that failed as well; which they are."""
        ended = self.session.study.ended
        found = [s for s, several in jobs.items() if s not in self.told and all(ended(job) for job in several)]
        for seed in found:
            self.add(seed, jobs[seed])
        return found

    def end(self, jobs: dict[int, list[Job]], left: list[Job], fresh: bool) -> None:
        """Put on it what is there of the seeds that are not, the runs that were `left` being late; the report is drawn
        anew if runs are `fresh`."""
        names, added = {job.name for job in left}, list[int]()
        for seed, several in jobs.items():
            late = {job.candidate for job in several if job.name in names}
            if len(late) == len(self.chosen):
                self.full = True
            elif seed not in self.told:
                self.add(seed, several, late)
                added.append(seed)
        if added and fresh and (min(added) < self.stages.seeds or self.session.has_time()):
            self.session.show_so_far()

    def add_curve(self, seeds: range) -> None:
        """Runs on parts of the rows, those whose turn it is after the full runs of `seeds`."""
        there = {c.name: self.chosen[c.name] for c in self.session.study.candidates if c.name in self.chosen}
        wanted = [each for seed in seeds for each in seeds_of_curve(self.stages, seed, self.full)]
        self.parts += learning_curve(self.session, self.stages, there, sorted(set(wanted)))


@dataclass
class SeedGate(Gate):
    """Lets runs of several seeds begin one after the other, at last those of candidates that still fit, and has a seed
    shown once all of it is there."""

    board: Board = field(kw_only=True)
    jobs: dict[int, list[Job]] = field(kw_only=True)
    refused: set[str] = field(default_factory=set)
    """candidates that there was no time for a further run of"""
    added: list[int] = field(default_factory=list)
    """seeds on the board that are not in the report yet"""

    def admits(self, job: Job) -> bool:
        if job.candidate not in self.refused and super().admits(job):
            return True
        self.refused.add(job.candidate)
        return False

    def ended(self, job: Job, took: float) -> None:
        super().ended(job, took)
        self.added += self.board.take_in(self.jobs)

    def meanwhile(self) -> None:
        session = self.board.session
        if self.added and (min(self.added) < self.board.stages.seeds or session.has_time()):
            session.show_so_far(beside_runs=True)
        self.added.clear()


def joined(fixed: Fixed) -> list[Job]:
    return [job for jobs in fixed.values() for job in jobs]


def keep_fitted(session: Session, fixed: Fixed) -> None:
    """Remember from which rows each candidate that no seed changes has learnt."""
    candidates = {candidate.name: candidate for candidate in session.study.candidates}
    for name, jobs in fixed.items():
        if name in candidates and all(session.study.finished(job) for job in jobs):
            share = jobs[0].config.reading.train_fraction / session.asked.reading.train_fraction
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
    session.lead(jobs, stages.first, seeds=0)


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
    session.lead(session.study.jobs + found, stages.full, session.led)
    if len(left) < len(undone) and session.has_time():
        session.show_so_far()
    return found


def part_of(job: Job) -> tuple[str, int, float]:
    """Which point of a learning curve a run is for; of several folds, all are needed."""
    return job.candidate, job.seed, job.config.reading.train_fraction


def in_order(session: Session, chosen: dict[str, Setting], seed: int) -> list[Setting]:
    """Of the first seed those that take longest come first: trained networks, which have features to read, then the
    heaviest; later ones begin with the candidates that lead on validation."""
    if seed == 0:
        return sorted(
            chosen.values(), key=lambda s: (not s.candidate.start, -s.candidate.count.get("macs", 0), s.candidate.name)
        )
    scores: dict[str, list[float]] = {name: [] for name in chosen}
    for job in session.study.jobs:
        if job.candidate in scores:
            scores[job.candidate].append(session.validation(job))
    return sorted(chosen.values(), key=lambda s: -median(scores[s.candidate.name] or [-math.inf]))
