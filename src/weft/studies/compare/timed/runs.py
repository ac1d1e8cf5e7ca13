"""The runs of a comparison by time: seconds become steps, and every run has a predicted length."""

from __future__ import annotations

from dataclasses import replace

from weft.studies.compare.candidates import Candidate, Facts
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.run_configs import on_part, run_config, with_fraction
from weft.studies.compare.timed.pace import Pace
from weft.studies.compare.timed.state import Setting, State
from weft.studies.engine.study import Job
from weft.training.config import AskedPrecision
from weft.training.run.plan import Timing

BASELINE_SHARE = 0.12  # of the time may go into the classical baseline, on one worker; else it learns from fewer rows
LEAST_ROWS = 200  # that it learns from however short the time
GROWN = 1.5  # times the rows that it learnt from before, from which on it is fitted again


class Runs:
    """Makes runs of a given length out of settings, and tells how long each will take."""

    def __init__(self, asked: ComparisonConfig, facts: Facts, state: State, total: float) -> None:
        self.asked, self.facts, self.state, self.total = asked, facts, state, total
        self.folds = asked.reading.folds or 1
        self.lengths: dict[str, float] = {}
        self.timings: dict[str, Timing] = {}

    def seed(self, setting: Setting, seed: int, length: float, share: float = 1.0) -> list[Job]:
        """The runs of a seed: one, or one for each fold of its own cut of the rows."""
        whole = self.fitted(setting) if setting.candidate.fixed else self.trained(setting, seed, length, share=share)
        if self.folds == 1:
            return [whole]
        found = []
        for fold in range(self.folds):
            reading = replace(whole.labelled.reading, split_seed=self.asked.reading.split_seed + seed, fold=fold)
            found.append(replace(whole, config=replace(whole.labelled, reading=reading), part=f"fold{fold}"))
            shared = setting.candidate.fixed and setting.candidate.start  # features are read once for all folds
            self.lengths[found[-1].name] = self.predicted(whole, self.folds if shared else 1)
            if whole.name in self.timings:
                self.timings[found[-1].name] = self.timings[whole.name]
        return found

    def fitted(self, setting: Setting) -> Job:
        """The run of a candidate that no seed changes: a probe, or the baseline from its share of the rows."""
        candidate = setting.candidate
        config = run_config(self.asked, candidate, 0, self.facts.rows)
        if candidate.start:
            return Job(candidate.name, config, self.fingerprint(candidate))
        share = candidate.share if candidate.share < 1 else self.share(candidate)
        job = Job(candidate.name, with_fraction(config, share), self.facts.fingerprint)
        self.lengths[job.name] = (self.state.baseline or 0.0) * share * self.facts.rows
        return job

    def share(self, candidate: Candidate) -> float:
        """The rows that the baseline learns from: as many as there is time for, or those of before if they are nearly
        as many."""
        if self.asked.time is None:
            return 1.0
        rows, each = self.facts.rows, self.state.baseline or 0.0
        affordable = BASELINE_SHARE * self.total / (each * self.folds) if each else rows
        share, before = min(1.0, max(LEAST_ROWS, affordable) / rows), self.state.fitted.get(candidate.name)
        return before.share if before is not None and share < GROWN * before.share else share

    def fingerprint(self, candidate: Candidate) -> str:
        """Of all that a run reads: the data, and the weights that it starts from."""
        return f"{self.facts.fingerprint}+{candidate.weights}" if candidate.weights else self.facts.fingerprint

    def trained(self, setting: Setting, seed: int, length: float, tested: bool = True, share: float = 1.0) -> Job:
        """A run of so many seconds of training; one that is not tested is a trial."""
        pace = self.state.paces[setting.size]
        config = run_config(self.asked, setting.candidate, seed, self.facts.rows, pace.steps(length))
        config = replace(
            config,
            optimisation=replace(config.optimisation, lr=setting.lr),
            execution=replace(config.execution, eval_every=pace.interval(length), precision=self.precision(pace)),
            objective=config.objective if tested else replace(config.objective, judged_on="validation"),
        )
        config = on_part(config, share, self.facts.rows)
        job = Job(setting.candidate.name, config, self.fingerprint(setting.candidate))
        self.lengths[job.name] = pace.seconds(length, tested)
        self.timings[job.name] = Timing(pace.step, pace.validation)
        return job

    def precision(self, pace: Pace) -> AskedPrecision:
        """The format that was asked for, or else the one in which the network was timed."""
        asked = self.asked.execution.precision
        return pace.precision if asked == "auto" else asked

    def predicted(self, job: Job, sharing: int = 1) -> float:
        """Seconds of a run; 0 where that is not known. Runs that share the features of a probe read them once."""
        known = {probe.candidate.name: probe.seconds / sharing + probe.fitting for probe in self.state.probes or []}
        return self.lengths.get(job.name, known.get(job.candidate, 0.0))
