"""One session of a comparison by time: what its stages share."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace

from weft.errors import WeftError
from weft.studies.compare.candidates import Candidate
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.progress import Watch
from weft.studies.compare.run_configs import BATCH
from weft.studies.compare.timed.clock import Clock, Gate, in_words
from weft.studies.compare.timed.pace import Pace
from weft.studies.compare.timed.runs import Runs
from weft.studies.compare.timed.sizes import usual_setting
from weft.studies.compare.timed.state import Setting, Spent, State
from weft.studies.engine.runner import Pool, Say, run_jobs
from weft.studies.engine.study import Job, Study
from weft.studies.engine.worker_time import noting
from weft.training.storage.record import best_validation

MEASURING = 0.5  # of the time until the end, or of what is kept for it, for the speeds of networks in use
REPLACING = 2  # seeds of longer runs that tell more than any number of shorter ones
MARGIN = 1.6  # of what mistakes and report took before, for the last ones
Finish = Callable[[Study], None]  # what is measured once runs are there: speeds in use, mistakes


@dataclass
class Session:
    """What is compared, by whom, in which time, and how far it is."""

    asked: ComparisonConfig
    of_trained: ComparisonConfig
    """what was asked of trained networks, which take images of another side"""
    natural_side: int | None
    """px of photographs that were made small"""
    study: Study
    pool: Pool
    state: State
    clock: Clock
    say: Say
    watch: Watch
    finish: Finish
    before: int = 0
    """seeds of the leaderboard that an earlier session left; another takes its place once it has about as many"""
    led: int = 0
    """seeds of the leaderboard of this one, none while its runs are the first short ones"""
    learnt: list[Candidate] = field(init=False)
    """networks that are trained"""
    runs: Runs = field(init=False)

    def __post_init__(self) -> None:
        self.learnt = [candidate for candidate in self.study.candidates if not candidate.fixed]
        self.runs = Runs(self.asked, self.study.facts, self.state, self.clock.total)
        self.clock.reserve = max(self.clock.reserve, self.state.reserve)
        self.study = replace(self.study, trials=self.trials(), notes=self.state.notes)

    def trials(self) -> list[Job]:
        """The trials of all sessions."""
        return [self.runs.trained(setting, 0, length, tested=False) for setting, length in self.state.tried]

    @property
    def workers(self) -> int:
        return len(self.pool.workers)

    @property
    def together(self) -> int:
        """How many workers' cores one task can have: those of a machine, but not those of several."""
        return 1 if self.pool.settled else self.workers

    @property
    def batch(self) -> int:
        return self.asked.optimisation.batch_size or BATCH

    @property
    def epoch(self) -> float:
        """Steps of one."""
        return self.study.facts.rows / self.batch

    @property
    def names(self) -> set[str]:
        """Of the networks that are trained."""
        return {candidate.name for candidate in self.learnt}

    def usual(self, candidate: Candidate) -> Setting:
        return usual_setting(self.asked, candidate)

    def paces(self) -> list[Pace]:
        """Of every network that is trained, at the settings that were chosen for it, or its usual ones."""
        settings = [self.state.chosen.get(candidate.name) or self.usual(candidate) for candidate in self.learnt]
        return [self.state.paces[setting.size] for setting in settings]

    def fixed(self) -> dict[str, list[Job]]:
        """The runs of candidates that no seed changes, by candidate."""
        fixed = [candidate for candidate in self.study.candidates if candidate.fixed]
        return {candidate.name: self.runs.seed(Setting(candidate, 0.0), 0, 0.0) for candidate in fixed}

    def predicted(self, jobs: Iterable[Job]) -> float:
        """Seconds of the runs among these that are still to be done, one after the other."""
        return sum(self.runs.predicted(job) for job in jobs if not self.study.done(job))

    def pending(self) -> float:
        """Seconds of the runs that no seed changes, are still to be done, and will be: they end in time."""
        jobs = [job for several in self.fixed().values() for job in several]
        return self.predicted(job for job in jobs if self.asked.time is None or self.gate().admits(job))

    def until(self, length: float, seeds: int = 1) -> float:
        """Seconds from the beginning of all until a run of such a length of every network has ended, or several."""
        runs = seeds * self.runs.folds * sum(pace.seconds(length) for pace in self.paces()) / self.workers
        return runs + self.clock.spent() + self.clock.reserve

    def add(self, candidate: Candidate) -> None:
        """One more network that is trained, or the same on other rows in its place."""
        self.learnt = in_place(self.learnt, candidate)
        self.study = replace(self.study, candidates=in_place(self.study.candidates, candidate))

    def without(self, names: set[str], why: str = "can be trained on these data here; the lines above say why") -> None:
        """Go on without some candidates; `why` there is nothing to compare if none is left."""
        self.learnt = [candidate for candidate in self.learnt if candidate.name not in names]
        left = [candidate for candidate in self.study.candidates if candidate.name not in names]
        self.study = replace(self.study, candidates=left)
        if not self.learnt:
            raise WeftError(f"no candidate {why}")

    def has_time(self) -> bool:
        """Whether there is time to draw the report once more than at the end."""
        return self.asked.time is None or self.clock.left() > self.clock.reserve

    def time_to_measure(self) -> float | None:
        """Seconds that measuring the speeds of networks in use may take: slow ones would make the end late."""
        if self.asked.time is None:
            return None
        return MEASURING * max(self.clock.reserve, self.clock.until_end())

    def gate(self) -> Gate:
        """Who decides whether a run ends in time."""
        return Gate(self.clock, self.runs.predicted)

    def admits(self, job: Job) -> bool:
        """Whether a run is there, or there is time for it."""
        return self.asked.time is None or self.study.done(job) or self.gate().admits(job)

    def run(self, jobs: list[Job], stage: str, gate: Gate | None = None) -> list[Job]:
        """Do the jobs that there is time for, by the `gate` if one is given; returns those that were not finished."""
        timed = self.asked.time is not None
        self.watch(self.study, jobs, stage, self.clock.until_end if timed else None)
        try:
            study = replace(self.study, timings=self.runs.timings)  # timed with as many threads, all workers busy
            return run_jobs(study, self.pool, jobs, self.say, (gate or self.gate()) if timed else None)
        finally:  # the time of a session that is interrupted is spent, too
            self.save()

    def lead(self, jobs: list[Job], length: float, seeds: int) -> None:
        """Make these the runs of the leaderboard, so many seeds of full ones."""
        self.study = replace(self.study, jobs=jobs, budget=f"{in_words(length)} of training of each network")
        self.led = seeds
        self.keep()

    @property
    def spent(self) -> float | None:
        """Seconds of all sessions, where the time of the whole was given."""
        return None if self.asked.time is None else round(self.clock.spent(), 1)

    @property
    def leads(self) -> bool:
        """Whether its leaderboard tells at least about as much as that of an earlier session."""
        return self.led >= min(self.before, REPLACING)

    def keep(self) -> None:
        """Write the leaderboard down, unless that of an earlier session tells more."""
        if self.leads:
            self.state.led = self.led
            self.study = replace(self.study, spent=self.spent)
            self.study.save()

    def validation(self, job: Job) -> float:
        """The best validation score of a run, or worst of all where it has none."""
        record = self.study.run_folder(job).record()
        if record is None or record["status"] != "finished":
            return -math.inf
        return best_validation(record)

    def tell(self, sentence: str) -> None:
        """Say what was planned or has happened, and keep it for the report."""
        self.say(sentence)
        self.state.story.append((round(self.clock.spent(), 1), sentence.strip()))
        self.study = replace(self.study, story=self.state.story)

    @contextmanager
    def kept_in_reserve(self) -> Iterator[None]:
        """Do now what will be done once more at the end: as much time is kept for it, and some more."""
        began = time.perf_counter()
        yield
        self.clock.reserve = max(self.clock.reserve, MARGIN * (time.perf_counter() - began))
        self.state.reserve = self.clock.reserve

    def show_so_far(self, beside_runs: bool = False) -> None:
        """The report and a line about what the runs say that are finished by now. What drawing takes `beside_runs` that
        are under way is no measure of what it takes at the end."""
        from weft.studies.results.summary import draw_report  # loads torch

        folder = self.study.folder
        try:
            with nullcontext() if beside_runs else self.kept_in_reserve():
                summary = draw_report(folder)
        except WeftError as error:
            self.say(f"no report yet: {error}")
            return
        scores = [f"{row['name']} {row['score']:.3f}" for row in summary["rows"] if row["score"] is not None]
        self.say(f"so far: {', '.join(scores)}; report: {folder / 'report.html'}")
        if self.asked.time is not None:
            self.say(f"{in_words(self.clock.until_end())} left")

    @contextmanager
    def noting_time(self) -> Iterator[None]:
        """Note again and again how much time is spent, also while nothing ends that would be kept with it."""

        def note() -> None:
            with suppress(OSError, WeftError):  # what is kept after each round tells it too
                Spent(self.state.question, self.clock.spent(), self.state.judged[1]).save(self.study.folder)

        with noting(note):
            yield

    def save(self) -> None:
        """Keep what was measured and chosen."""
        self.state.spent = self.clock.spent()
        self.state.save(self.study.folder)


def in_place(candidates: list[Candidate], one: Candidate) -> list[Candidate]:
    """The candidates with one more, or with it in the place of that of its name."""
    if one.name not in {candidate.name for candidate in candidates}:
        return [*candidates, one]
    return [one if candidate.name == one.name else candidate for candidate in candidates]
