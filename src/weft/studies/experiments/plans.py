"""`weft study run NAME --plan`: the runs of every study as they are predicted, timed here or, at the paper scale,
counted."""

from __future__ import annotations

import tempfile
from pathlib import Path

from weft.networks.measure.cost import total_macs
from weft.studies.compare.candidates import Candidate, fit_to, make_candidates
from weft.studies.compare.comparison import trial_jobs
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.dry_run import dry_comparison, dry_study, this_machine
from weft.studies.engine import tasks
from weft.studies.engine.runner import Pool
from weft.studies.engine.simulation import DryRun, PlannedRun
from weft.studies.experiments.e11_training_issues import plan_claims
from weft.studies.experiments.families.e9_cost_front import carried_rates, front_candidates, plan_front
from weft.studies.experiments.families.scales import PUBLISHED, SCALES, question
from weft.studies.experiments.registry import Request, find_scale
from weft.studies.experiments.text_tables.design import PERPLEXITY
from weft.studies.experiments.text_tables.forecast import ACCELERATOR, PRICE, Prediction, operations, repeats
from weft.studies.experiments.text_tables.run_configs import Asked
from weft.studies.experiments.text_tables.run_experiment import look_at_sources
from weft.studies.experiments.text_tables.timing import predict
from weft.studies.experiments.transfer_tables import run_configs as transfer
from weft.studies.experiments.transfer_tables.run_transfer import gpu_hours, look, sources
from weft.studies.experiments.transfer_tables.run_transfer import predict as predict_transfer
from weft.training.config import RunConfig

ACCELERATED = "an A100 in bf16 at 40 % of its peak, counted and not measured"
TRAINING = 2 * 3  # operations for a multiply-add of a forward pass: multiply and add, and twice as many backward


def dry_e9(request: Request) -> DryRun:
    """Several sizes of each family."""
    scale, asked = find_scale(SCALES, request.scale), question(request)
    if scale.name == "paper":
        return counted(front_candidates(PUBLISHED, scale, asked.count()), asked, request.price)
    with Pool() as pool, tempfile.TemporaryDirectory() as nowhere:
        asked, study = plan_front(asked, scale, Path(nowhere), "", pool)
        tried = trial_jobs(asked, study, carried_rates(study.candidates))
        return dry_study(study, tried, pool, request.price or asked.execution.price_per_hour)


def dry_e10(request: Request) -> DryRun:
    """The families and the controls at one size."""
    asked = question(request)
    if request.scale == "paper":
        return counted(make_candidates(PUBLISHED, "families", "macs", asked.count()), asked, request.price)
    dry = dry_comparison(asked, request.say)
    return dry if request.price is None else DryRun(dry.runs, dry.machine, dry.side_by_side, request.price, dry.notes)


def counted(candidates: list[Candidate], asked: ComparisonConfig, price: float | None) -> DryRun:
    """Runs of networks that nobody trains here, by their operations."""
    examples = (asked.steps or 0) * asked.optimisation.batch
    runs = [
        PlannedRun(f"{candidate.name}, seed {seed}", TRAINING * macs(candidate) * examples / ACCELERATOR)
        for seed in range(asked.seeds)
        for candidate in candidates
        if not candidate.fixed
    ]
    batches = f"{asked.steps:,} steps of {asked.optimisation.batch}"
    notes = [f"{PUBLISHED.name}, {PUBLISHED.side} px, {batches}; the classical baseline is left out"]
    return DryRun(runs, ACCELERATED, price=PRICE if price is None else price, notes=notes)


def macs(candidate: Candidate) -> int:
    return total_macs(fit_to(PUBLISHED, candidate.model, candidate.network))


def dry_text_table(asked: Asked, price: float | None) -> DryRun:
    """Tables 6 to 9: pre-training, then every candidate on every task."""
    if asked.scale.name == "paper":
        trained = [one for one in asked.experiment.candidates(asked.scale) if one.start == "pretrained"]
        runs = [
            PlannedRun(f"{one.name}, seed {seed}", operations(one.config(asked.scale), asked.scale) / ACCELERATOR)
            for seed in range(asked.seeds)
            for one in trained
        ]
        notes = ["pre-training alone is counted; the tasks take some hours more"]
        return DryRun(runs, ACCELERATED, price=PRICE if price is None else price, notes=notes)
    with Pool() as pool:
        found = predict(asked, pool, look_at_sources(asked, pool))
    return of_prediction(found, PERPLEXITY, asked.seeds, price)


def dry_transfer(asked: transfer.Asked, price: float | None) -> DryRun:
    """Table 3 and its figures: the larger set, then every row on every task."""
    if asked.scale.name == "paper":
        runs = [
            PlannedRun(f"{row.name}, seed {seed}", 3600 * gpu_hours(asked, row))
            for seed in range(asked.seeds)
            for row in asked.rows
            if row.family
        ]
        notes = ["the larger set alone is counted; the tasks take some hours more"]
        return DryRun(runs, ACCELERATED, price=PRICE if price is None else price, notes=notes)
    with Pool() as pool:
        for source in sources(asked).values():
            look(asked, pool, source)
        found = predict_transfer(asked, pool)
    return of_prediction(found, asked.upstream, asked.seeds, price)


def of_prediction(found: Prediction, first: str, seeds: int, price: float | None) -> DryRun:
    """The runs that a table predicts; those on its `first` part come before all others."""
    runs = [
        PlannedRun(f"{row}, {part}, seed {seed}", took, int(part != first))
        for row, parts in found.seconds.items()
        for part, took in parts.items()
        for seed in range(repeats(row, seeds))
    ]
    return DryRun(runs, this_machine(), found.workers, found.price_per_hour if price is None else price)


def dry_claims(request: Request, seeds: int, steps: int) -> DryRun:
    """E11: both sides of every claim."""
    with Pool() as pool, tempfile.TemporaryDirectory() as nowhere:
        facts = pool.first(tasks.look, RunConfig(source=request.source))
        study = plan_claims(Path(nowhere), facts, request.source, seeds, steps, "")
        price = study.jobs[0].config.execution.price_per_hour if request.price is None else request.price
        return dry_study(study, [], pool, price)
