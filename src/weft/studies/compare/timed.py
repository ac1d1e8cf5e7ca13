"""A comparison in a given time: an answer early, better ones as time goes by, and an end when it was promised.

first       every candidate at its usual settings, one seed, short runs: the first leaderboard
trials      other rates and sizes, as many for every candidate, by successive halving on the validation split
full runs   with the settings that won, seed by seed, and further seeds while time is left

What was measured and chosen is kept in timed.json, so that the same command goes on, also with more time.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

from weft.disk import Damaged, write_json
from weft.errors import WeftError
from weft.studies.compare.candidates import PRESETS, Candidate, Facts, default_budget, make_candidates, resized_to
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.pace import KEPT, LADDER, SHORTER, Pace, Stages, lay_out
from weft.studies.compare.rate_search import around, short_run_rate
from weft.studies.compare.run_configs import BATCH, EPOCHS, FINETUNING_RATE, SHARES, run_config, with_fraction
from weft.studies.compare.trained import Probe, finetuned, trained_probes
from weft.studies.engine import tasks
from weft.studies.engine.runner import Pool, Say, run_jobs
from weft.studies.engine.study import Job, Study, read_stored
from weft.training.config import seconds
from weft.training.storage.record import best_validation

FILE = "timed.json"
SETTINGS = 6  # of each candidate, by default: three rates, two sizes
SMALLER = 0.25  # of the parameters: the other size that is tried
EARLY = 0.2  # of the time, within which the first leaderboard is there
EARLY_END = 0.5  # of the time, after which a run for the first leaderboard is left
RESERVE, LEAST_RESERVE = 0.015, 3.0  # of the time, and seconds, for mistakes and the report
MARGIN = 1.6  # of what mistakes and report took the first time, for the last
LATE = 0.02  # of the time, after which a run that takes longer than predicted is saved and left
PASSES = 100  # epochs of a run, at most
MOST_SEEDS = 20
VALIDATION_ROWS = 1000  # that a run is judged by, at most
TEST_ROWS, MANY_TEST_ROWS, LONG = 2500, 10_000, 3600.0  # likewise; the second where there are so many seconds
PROBING = 0.04  # of the time goes into timing steps, at most
QUICK, QUICK_ROWS = 300.0, 10_000  # seconds below which the classical baseline learns from so many rows at most
ENOUGH = 300  # steps that a run should have: networks are made small for it
SIZES = (1.0, 0.25, 0.0625)  # of the parameters that suit the inputs
IN_RUNS = 0.8  # of the time goes into runs, about
PROBE_SHARE = 0.16  # of the time may go into the features of a trained network, at most
BACKWARD, FINETUNING_BATCH = 3, 32  # times a forward pass that a step takes, and its examples
FEW_STEPS = 20  # of a full run, which are told beforehand
FINETUNING_STEPS = 8  # of a trained network, below which it is not fine-tuned
THOROUGH = 5  # seeds of what is called a thorough answer


Finish = Callable[[Study], None]  # what is measured once runs are there: speeds in use, mistakes


@dataclass(frozen=True)
class Setting:
    """What a candidate is trained with."""

    candidate: Candidate
    lr: float

    @property
    def size(self) -> str:
        """What decides how long its steps take; the same after it was stored."""
        candidate = self.candidate
        trained = f" {candidate.start} {candidate.img_size} {candidate.share:g}" if candidate.start else ""
        return f"{candidate.model} {json.dumps(candidate.network)}{trained}"


@dataclass
class State:
    """What a timed comparison has measured and chosen so far; `question` tells whether it is still the same one."""

    question: str = ""
    amount: float | None = None
    """parameters of every candidate at first"""
    spent: float = 0.0
    """seconds of all sessions"""
    total: float = 0.0
    """seconds that were asked for"""
    stages: Stages | None = None
    """as they were laid out for them"""
    paces: dict[str, Pace] = field(default_factory=dict)
    probes: list[Probe] | None = None
    """of trained networks; None before they were looked for"""
    chosen: dict[str, Setting] = field(default_factory=dict)


class Clock:
    """The time of a comparison, over all of its sessions, and how wrong predictions have been."""

    def __init__(self, total: float, spent: float, started: float) -> None:
        self.total, self.before, self.started = total, spent, started
        self.reserve = max(LEAST_RESERVE, RESERVE * total)
        self.ratios: list[float] = []

    def spent(self) -> float:
        return self.before + time.perf_counter() - self.started

    def left(self) -> float:
        """Seconds for further runs."""
        return self.total - self.reserve - self.spent()

    def slowness(self) -> float:
        """Seconds that runs take for one that was predicted."""
        return median(self.ratios[-30:]) if self.ratios else 1.0


@dataclass
class Gate:
    """Lets a run begin only if it will end in time."""

    clock: Clock
    predicted: Callable[[Job], float]
    end: float | None = None
    """seconds of the comparison's time, before its own end, after which runs under way are left"""

    def admits(self, job: Job) -> bool:
        return self.predicted(job) * self.clock.slowness() <= self.clock.left()

    def ended(self, job: Job, took: float) -> None:
        if predicted := self.predicted(job):
            self.clock.ratios.append(took / predicted)

    def patience(self) -> float:
        """Seconds until runs that are still under way are saved and left."""
        rest = self.clock.left() if self.end is None else min(self.clock.left(), self.end - self.clock.spent())
        return max(0.0, rest + LATE * self.clock.total)


class TimedComparison:
    """The stages of one comparison."""

    def __init__(
        self,
        asked: ComparisonConfig,
        trained: ComparisonConfig,
        study: Study,
        pool: Pool,
        say: Say,
        started: float,
        finish: Finish,
    ) -> None:
        """`trained` is what was asked of trained networks, which take images of another side."""
        self.of_trained = trained
        self.study, self.pool, self.say, self.finish = study, pool, say, finish
        self.state = read_state(study.folder, asked, study.facts.fingerprint)
        self.clock = Clock(seconds(asked.time or "1d"), self.state.spent, started)
        self.asked = asked
        self.learnt = [candidate for candidate in study.candidates if not candidate.fixed]
        self.lengths: dict[str, float] = {}
        self.folds = asked.reading.folds or 1

    # ---- What runs there are.

    def usual(self, candidate: Candidate) -> Setting:
        if candidate.start:
            return Setting(candidate, FINETUNING_RATE)
        return Setting(candidate, self.asked.optimisation.lr or short_run_rate(self.asked.optimisation.opt))  # type: ignore[arg-type]

    def others(self, candidate: Candidate, count: int) -> list[Setting]:
        """Settings besides the usual ones: other rates, and these of a smaller network too."""
        usual = self.usual(candidate).lr
        lrs = around(usual, 3) if self.asked.optimisation.lr is None else [usual]
        sizes = [candidate]
        if count > len(lrs) and self.asked.match == "time" and not candidate.start:
            smaller = resized_to(candidate, SMALLER, self.study.facts)
            sizes += [smaller] if smaller is not None else []
        found = [Setting(size, lr) for size in sizes for lr in lrs]
        return [setting for setting in found if setting != self.usual(candidate)][: count - 1]

    def jobs(self, setting: Setting, seed: int, length: float, share: float = 1.0) -> list[Job]:
        """The runs of a seed: one, or one for each fold of its own cut of the rows."""
        whole = self.job(setting, seed, length, share=share)
        if self.folds == 1:
            return [whole]
        found = []
        for fold in range(self.folds):
            reading = replace(whole.labelled.reading, split_seed=self.asked.reading.split_seed + seed, fold=fold)
            found.append(replace(whole, config=replace(whole.labelled, reading=reading), part=f"fold{fold}"))
            self.lengths[found[-1].name] = self.predicted(whole) / (self.folds if setting.candidate.fixed else 1)
        return found

    def job(self, setting: Setting, seed: int, length: float, tested: bool = True, share: float = 1.0) -> Job:
        """A run of so many seconds of training."""
        facts = self.study.facts
        if setting.candidate.fixed:
            share = min(1.0, QUICK_ROWS / facts.rows) if self.clock.total < QUICK else 1.0
            config = run_config(self.asked, setting.candidate, 0, facts.rows)
            config = config if setting.candidate.start else with_fraction(config, share)
            return Job(setting.candidate.name, config, facts.fingerprint)
        pace = self.state.paces[setting.size]
        config = run_config(self.asked, setting.candidate, seed, facts.rows, pace.steps(length))
        config = replace(
            config,
            optimisation=replace(config.optimisation, lr=setting.lr),
            execution=replace(config.execution, eval_every=pace.interval(length)),
            objective=config.objective if tested else replace(config.objective, judged_on="validation"),
        )
        job = Job(setting.candidate.name, with_fraction(config, share), facts.fingerprint)
        self.lengths[job.name] = pace.seconds(length, tested)
        return job

    def predicted(self, job: Job) -> float:
        """Seconds of a run; 0 where that is not known."""
        known = {probe.candidate.name: probe.seconds for probe in self.state.probes or []}
        return self.lengths.get(job.name, known.get(job.candidate, 0.0))

    # ---- The stages.

    def carry_out(self) -> Study:
        """All stages, as far as there is time for them; the study with the runs that its leaderboard is made of."""
        self.add_probes()
        self.measure_paces([self.usual(candidate) for candidate in self.learnt])
        stages = self.plan()
        self.announce(stages)
        for setting in self.state.chosen.values():
            if setting.candidate.start:
                self.add(setting.candidate)
        if not self.state.chosen:
            self.first_leaderboard(stages)
            self.add_finetuned(stages)
            stages = self.adapted(stages)
            self.choose_settings(stages)
        self.full_runs(self.shortened(stages))
        return self.study

    def add_probes(self) -> None:
        """Set trained networks beside the others, each a linear probe with a candidate's share of the time."""
        if self.state.probes is None:
            of_each = IN_RUNS * self.clock.total * len(self.pool.workers) / (len(self.learnt) + 2)
            within = min(PROBE_SHARE * self.clock.total, of_each)  # a probe is one run, on one worker
            if self.asked.time is None:
                within = seconds(self.asked.amount or "1s") * (self.asked.seeds + 1)
            self.state.probes = trained_probes(self.of_trained, self.study.facts, self.pool, within, self.say)
            self.save()
        probes = [probe.candidate for probe in self.state.probes]
        self.study = replace(self.study, candidates=[*self.study.candidates, *probes])
        for probe in probes:
            rows = f"{round(probe.share * self.study.facts.rows):,} training rows"
            side = f", images at {probe.img_size} px" if probe.img_size else ""
            self.say(f"{probe.name}: a linear probe of a trained network, {rows}{side}")

    def add_finetuned(self, stages: Stages) -> None:
        """The trained networks, all of their weights moving, where there is time for some steps."""
        settings = []
        for probe in self.state.probes or []:
            setting = self.usual(finetuned(probe.candidate))
            expected = stages.full / (BACKWARD * FINETUNING_BATCH * probe.each)
            if expected < FINETUNING_STEPS / 2:
                self.say(
                    f"left out: {setting.candidate.name}: about {max(1, expected):.0f} steps only; give more --time"
                )
            else:
                settings.append(setting)
        self.measure_paces(settings)
        for setting in settings:
            pace = self.state.paces.get(setting.size)
            if pace is None:
                continue
            if (steps := pace.steps(stages.full)) < FINETUNING_STEPS:
                longer = in_words(self.clock.total * FINETUNING_STEPS / steps)
                self.say(f"left out: {setting.candidate.name}: {steps} steps only; --time {longer} would do")
                continue
            self.add(setting.candidate)

    def add(self, candidate: Candidate) -> None:
        """One more network that is trained."""
        self.learnt.append(candidate)
        self.study = replace(self.study, candidates=[*self.study.candidates, candidate])

    def measure_paces(self, settings: list[Setting]) -> None:
        """Time the steps of what has not been timed before, with all workers busy."""
        wanted = {setting.size: setting for setting in settings if setting.size not in self.state.paces}
        if not wanted:
            return
        duration = min(1.0, PROBING * self.clock.total * len(self.pool.workers) / len(wanted) / 2)
        facts = self.study.facts
        arguments = [
            (run_config(self.asked, setting.candidate, 0, facts.rows), self.pool.threads, duration)
            for setting in wanted.values()
        ]
        for size, answer in zip(wanted, self.pool.each(tasks.pace, arguments), strict=True):
            if isinstance(answer, WeftError):
                self.say(f"left out: {wanted[size].candidate.name}: {answer}")
                if any(self.usual(candidate).size == size for candidate in self.learnt):
                    self.without({wanted[size].candidate.name})
            else:
                self.state.paces[size] = Pace(*answer)
        self.save()

    def without(self, names: set[str]) -> None:
        """Go on without some candidates."""
        self.learnt = [candidate for candidate in self.learnt if candidate.name not in names]
        left = [candidate for candidate in self.study.candidates if candidate.name not in names]
        self.study = replace(self.study, candidates=left)
        if not self.learnt:
            raise WeftError("no candidate can be trained on these data here; the lines above say why")

    def plan(self) -> Stages:
        """The lengths of runs that fit into the time; refused where not even a step of each does.

        For the same time they are as they were. With more time the settings that were chosen are kept, and runs get
        longer, or there are more of them.
        """
        before = self.state.stages
        if before is not None and self.state.total == self.clock.total and self.asked.amount is None:
            return before
        stages = self.laid_out()
        if before is not None and self.state.chosen:
            stages = replace(stages, full=max(stages.full, before.full), settings=1)
        self.state.stages, self.state.total = stages, self.clock.total
        self.save()
        return stages

    def laid_out(self) -> Stages:
        """The longest runs that fit into what is left of the time."""
        paces = self.usual_paces()
        settings = (SETTINGS if self.asked.trials is None else self.asked.trials) or 1
        if self.asked.amount is not None:
            full = seconds(self.asked.amount)
            return Stages(full / SHORTER, full, settings, self.asked.seeds)
        workers, shares = len(self.pool.workers), 1 + len(SHARES) * self.asked.learning_curve
        probes = self.state.probes or []
        reading = sum(probe.seconds for probe in probes) / workers if not self.state.chosen else 0.0
        early = EARLY * self.clock.total - self.clock.spent() - reading if not self.state.chosen else math.inf
        longest = PASSES * self.epoch * max(pace.step for pace in paces)
        settings = 1 if self.state.chosen else settings
        longer = [max(paces, key=lambda pace: pace.step)] * len(probes)  # as if they were fine-tuned, too
        left = self.clock.left() - reading
        seeds = self.asked.seeds
        stages = lay_out(paces + longer, left, early, workers, seeds, settings, longest, shares, self.folds)
        if stages is None:
            least = 2 * sum(pace.seconds(0.0) for pace in paces) / workers + self.clock.spent() + self.clock.reserve
            raise WeftError(
                f"--time {self.asked.time} is too short for a step of each of {len(paces)} candidates; give at least "
                f"{in_words(1.2 * least)}, or fewer --models"
            )
        return stages

    def adapted(self, stages: Stages) -> Stages:
        """The stages with fewer settings, seeds or steps where runs take longer than was predicted."""
        if self.asked.time is None:
            return stages
        paces = self.usual_paces()
        shares = 1 + len(SHARES) * self.asked.learning_curve
        left = self.clock.left() / max(1.0, self.clock.slowness())
        workers = len(self.pool.workers)
        found = lay_out(paces, left, math.inf, workers, stages.seeds, stages.settings, stages.full, shares, self.folds)
        if found is None or found.full < stages.first:
            found = replace(stages, full=stages.first, settings=1, seeds=1)
        return self.changed(stages, replace(found, first=stages.first))

    def shortened(self, stages: Stages) -> Stages:
        """The stages with full runs that every candidate can make once in the time that is left."""
        if self.asked.time is None:
            return stages
        paces = [self.state.paces[setting.size] for setting in self.state.chosen.values()]
        full, left = stages.full, self.clock.left() * len(self.pool.workers) / max(1.0, self.clock.slowness())
        jobs = [job for setting in self.state.chosen.values() for job in self.jobs(setting, 0, full)]
        done = all(self.study.done(job) for job in jobs)
        while not done and full > stages.first and self.folds * sum(pace.seconds(full) for pace in paces) > left:
            full /= LADDER
        return self.changed(stages, replace(stages, full=full))

    def changed(self, before: Stages, after: Stages) -> Stages:
        """Keep and tell what had to be changed."""
        if after != before:
            settings = f", {after.settings} settings" if after.settings > 1 else ""
            self.say(f"less time is left than was planned for: seeds of {in_words(after.full)} each{settings}")
            self.state.stages = after
            self.save()
        return after

    def announce(self, stages: Stages) -> None:
        """The plan: what each candidate gets, when it ends, and what more would take."""
        count, workers = len(self.learnt), len(self.pool.workers)
        beside = f", {workers} side by side" if workers > 1 else ""
        if self.asked.amount is None:
            ends = datetime.now().astimezone() + timedelta(seconds=self.clock.total - self.clock.spent())
            self.say(f"plan for {in_words(self.clock.total)}, until {ends:%H:%M:%S}:")
        if self.state.chosen:
            self.say("  settings are kept as they were chosen before")
        else:
            self.say(f"  a first leaderboard: {count} networks, {in_words(stages.first)} of training each{beside}")
            if stages.settings > 1:
                self.say(f"  then up to {stages.settings} settings of each (rates and sizes), judged on validation")
        if self.folds > 1:
            self.say(f"  every seed is a cross-validation: {self.folds} runs, each row tested by one that never saw it")
        self.say(
            f"  then {stages.seeds} seeds of each, {in_words(stages.full)} of training a run; more while time is left"
        )
        self.say(f"  a thorough answer ({EPOCHS} epochs, {THOROUGH} seeds) would take {in_words(self.thorough())}")
        for candidate, pace in zip(self.learnt, self.usual_paces(), strict=True):
            if (steps := pace.steps(stages.full)) < FEW_STEPS:
                self.say(f"  {candidate.name} makes {steps} steps only in that time")

    def thorough(self) -> float:
        """Seconds of a comparison of many epochs and seeds."""
        runs = THOROUGH * self.folds
        each = [runs * pace.seconds(EPOCHS * self.epoch * pace.step) for pace in self.usual_paces()]
        return sum(each) / len(self.pool.workers)

    def first_leaderboard(self, stages: Stages) -> None:
        """Every candidate once, in a short run."""
        settings = [self.usual(candidate) for candidate in self.heaviest_first()]
        settings += [Setting(candidate, 0.0) for candidate in self.study.candidates if candidate.fixed]
        jobs = [job for setting in settings for job in self.jobs(setting, 0, stages.first)]
        jobs = sorted(jobs, key=lambda job: -self.predicted(job))
        self.lead(jobs, stages.first)
        left = self.run(jobs, EARLY_END)
        names = {job.candidate for job in left}
        for name in sorted(names):
            self.say(f"left out: {name}: there is no time for it")
        self.lead([job for job in jobs if job.candidate not in names], stages.first)
        self.without(names)
        began = time.perf_counter()
        self.finish(self.study)
        self.show_so_far()
        self.clock.reserve = max(self.clock.reserve, MARGIN * (time.perf_counter() - began))

    def choose_settings(self, stages: Stages) -> None:
        """For each candidate the setting with the best validation score: many in short runs, few in longer ones."""
        others = {c.name: self.others(c, stages.settings) for c in self.learnt} if stages.settings > 1 else {}
        self.measure_paces([setting for settings in others.values() for setting in settings])
        others = {name: [s for s in settings if s.size in self.state.paces] for name, settings in others.items()}
        if any(len(settings) > KEPT for settings in others.values()):
            tried = {name: [(s, self.job(s, 0, stages.short, False)) for s in found] for name, found in others.items()}
            self.trials([job for pairs in tried.values() for _, job in pairs])
            others = {
                name: [s for s, _ in sorted(pairs, key=lambda pair: -self.validation(pair[1]))[:KEPT]]
                for name, pairs in tried.items()
            }
        late = {c.name: [self.usual(c)] for c in self.learnt if c.start and others}
        last = {
            name: [(s, self.job(s, 0, stages.first, False)) for s in found + late.get(name, [])]
            for name, found in others.items()
        }
        self.trials([job for pairs in last.values() for _, job in pairs])
        for candidate in self.learnt:
            usual = self.usual(candidate)
            first = [] if candidate.start else [(usual, self.jobs(usual, 0, stages.first)[0])]
            entries = [*first, *last.get(candidate.name, [(usual, self.job(usual, 0, stages.first, False))])]
            self.state.chosen[candidate.name] = max(entries, key=lambda pair: self.validation(pair[1]))[0]
        self.save()
        if others:
            told = ", ".join(f"{name} {self.said(setting)}" for name, setting in self.state.chosen.items())
            self.say(f"settings chosen on validation: {told}")
            self.study = replace(self.study, notes=[f"up to {stages.settings} settings were tried for every candidate"])

    def said(self, setting: Setting) -> str:
        count = setting.candidate.count.get("params", 0)
        return f"at {setting.lr:g} with {count:,} parameters"

    def full_runs(self, stages: Stages) -> None:
        """The settings that won, seed by seed; then further seeds of all, at last of those that fit."""
        chosen = {name: setting for name, setting in self.state.chosen.items() if name in self.names()}
        candidates = [chosen[c.name].candidate if c.name in chosen else c for c in self.study.candidates]
        fixed = [job for c in candidates if c.fixed for job in self.jobs(Setting(c, 0.0), 0, 0.0)]
        if any(not self.study.done(job) for job in fixed):  # with more time they may learn from more rows
            self.run(fixed)
        lacking = {job.candidate for job in fixed if not self.study.done(job)}
        fixed = [job for job in fixed if job.candidate not in lacking]
        done: list[Job] = []
        most = self.asked.seeds if self.asked.amount is not None or self.asked.learning_curve else MOST_SEEDS
        for seed in range(most):
            jobs = [job for setting in self.in_order(chosen, seed) for job in self.jobs(setting, seed, stages.full)]
            if seed >= stages.seeds and not any(self.gate().admits(job) or self.study.done(job) for job in jobs):
                break
            left = self.run(jobs)
            names = {job.candidate for job in left}
            done += [job for job in jobs if job.candidate not in names]
            if seed == 0 and left:
                self.say("time is up before every candidate has had a full run: the leaderboard is that of short runs")
                return
            self.study = replace(self.study, candidates=candidates)
            self.lead(done + fixed, stages.full)
            if seed < stages.seeds:
                self.show_so_far()
            if left:
                return
        if self.asked.learning_curve:
            parts = [
                job
                for share in SHARES
                for seed in range(stages.seeds)
                for setting in chosen.values()
                for job in self.jobs(setting, seed, stages.full, share)
            ]
            undone = {(job.candidate, job.seed) for job in self.run(parts)}
            self.lead(done + fixed + [job for job in parts if (job.candidate, job.seed) not in undone], stages.full)

    # ---- What the stages share.

    @property
    def epoch(self) -> float:
        """Steps of one."""
        return self.study.facts.rows / (self.asked.optimisation.batch_size or BATCH)

    def usual_paces(self) -> list[Pace]:
        """Of every network that is trained, at its usual settings."""
        return [self.state.paces[self.usual(candidate).size] for candidate in self.learnt]

    def names(self) -> set[str]:
        return {candidate.name for candidate in self.learnt}

    def heaviest_first(self) -> list[Candidate]:
        return sorted(self.learnt, key=lambda candidate: -candidate.count.get("macs", 0))

    def in_order(self, chosen: dict[str, Setting], seed: int) -> list[Setting]:
        """For the seeds that were planned all alike; later ones begin with the candidates that lead on validation."""
        if seed == 0:
            return sorted(chosen.values(), key=lambda setting: -setting.candidate.count.get("macs", 0))
        scores = {name: [] for name in chosen}  # type: dict[str, list[float]]
        for job in self.study.jobs:
            if job.candidate in scores:
                scores[job.candidate].append(self.validation(job))
        return sorted(chosen.values(), key=lambda s: -median(scores[s.candidate.name] or [-math.inf]))

    def gate(self, end: float | None = None) -> Gate:
        return Gate(self.clock, self.predicted, end)

    def run(self, jobs: list[Job], within: float = 1.0) -> list[Job]:
        """Do the jobs that there is time for, `within` a share of it; returns those that were not finished."""
        gate = self.gate(within * self.clock.total) if self.asked.time is not None else None
        left = run_jobs(self.study, self.pool, jobs, self.say, gate)
        self.save()
        return left

    def trials(self, jobs: list[Job]) -> None:
        left = self.run(jobs) if jobs else []
        self.study = replace(self.study, trials=[*self.study.trials, *(job for job in jobs if job not in left)])

    def lead(self, jobs: list[Job], length: float) -> None:
        """Make these the runs of the leaderboard."""
        self.study = replace(self.study, jobs=jobs, budget=f"{in_words(length)} of training each")
        self.study.save()

    def validation(self, job: Job) -> float:
        """The best validation score of a run, or worst of all where it has none."""
        record = self.study.run_folder(job).record()
        if record is None or record["status"] != "finished":
            return -math.inf
        return best_validation(record)

    def show_so_far(self) -> None:
        report_so_far(self.study.folder, self.say)
        if self.asked.time is not None:
            self.say(f"{in_words(max(0.0, self.clock.total - self.clock.spent()))} left")

    def save(self) -> None:
        """Keep what was measured and chosen."""
        self.state.spent = self.clock.spent()
        write_json(self.study.folder / FILE, asdict(self.state))


def fitting_amount(asked: ComparisonConfig, facts: Facts, pool: Pool, folder: Path) -> float | None:
    """Parameters of every candidate with which some hundred steps fit into a run, from the speed of one of them.

    None where networks were named, or something else is held equal: then they have the size that they have.
    """
    if asked.match != "time" or asked.models not in PRESETS:
        return None
    if (known := read_state(folder, asked, facts.fingerprint).amount) is not None:
        return known
    budget = default_budget(facts, "params")
    each = IN_RUNS * seconds(asked.time) * len(pool.workers) if asked.time else seconds(asked.amount or "1s")
    speed = None
    for share in SIZES:
        made = make_candidates(facts, asked.models, "params", share * budget, asked.controls, False, [])
        macs = sorted(candidate.count["macs"] for candidate in made)
        if speed is None:
            config = run_config(asked, made[-1], 0, facts.rows)
            step = pool.first(tasks.step_seconds, config, pool.threads)
            speed = made[-1].count["macs"] * config.optimisation.batch / step
        length = each / (len(made) * (asked.seeds + 2)) if asked.time else each
        if speed * length / (macs[len(macs) // 2] * (asked.optimisation.batch_size or BATCH)) >= ENOUGH:
            break
    write_json(folder / FILE, asdict(State(question_of(asked, facts.fingerprint), share * budget)))
    return share * budget


def question_of(asked: ComparisonConfig, fingerprint: str) -> str:
    """A digest of the data and of all that was asked but how much of it: with more time or seeds it is the same."""
    same = replace(asked, time=None, seeds=1, jobs=None, on=None, reuse=(), learning_curve=False)
    same = replace(same, reading=replace(same.reading, validation_rows=None, test_rows=None))
    return hashlib.blake2b(f"{same} {fingerprint}".encode(), digest_size=8).hexdigest()


def read_state(folder: Path, asked: ComparisonConfig, fingerprint: str) -> State:
    """What an earlier session kept of the same question; nothing, where there was none or its file is damaged."""
    path = folder / FILE
    found = State()
    if path.is_file():
        with suppress(Damaged):
            found = read_stored(path, State, "it is measured anew")
    question = question_of(asked, fingerprint)
    return found if found.question == question else State(question)


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


def judged_rows(asked: ComparisonConfig) -> ComparisonConfig:
    """With rows that runs are judged by, where nothing was said about it: evaluations must not take the time."""
    if asked.reading.folds is not None:  # which test every row
        return asked
    reading, long = asked.reading, seconds(asked.time or asked.amount or "1s") >= LONG
    tested = MANY_TEST_ROWS if long else TEST_ROWS
    judged = (reading.validation_rows or VALIDATION_ROWS, reading.test_rows or tested)
    return replace(asked, reading=replace(reading, validation_rows=judged[0], test_rows=judged[1]))


def in_words(length: float) -> str:
    """A time for people: 40 s, 12 min, 3.5 h."""
    if length < 10:
        return f"{length:.2g} s"
    if length < 120:
        return f"{length:.0f} s"
    return f"{length / 60:.3g} min" if length < 7200 else f"{length / 3600:.3g} h"
