"""Which optimiser and learning rate suit short runs? Chosen on validation splits alone; the test splits have no say.

    python benchmarks/rates.py [SIGN_DIGITS CIFAR10 ROTTEN_TOMATOES …] [--steps 300] [--jobs 2] [--output FOLDER]
    python benchmarks/rates.py CIFAR10 --models mixer_nano_p4_32 resnet20_cifar …   # named networks, as they are

Trains every family for `steps` batches of 32 on the sources that are given, or on the embedded ones (images of 32
pixels at 62,500 parameters, texts at 250,000), with every optimiser and rate, and takes the metric of each run on its
validation split, with the seconds that it took. Settings are ranked for every network (1 is best), ranks averaged over
the networks of a source and then over sources. What follows from it is
`weft.studies.compare.rate_search.short_run_rate`. The same command goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from weft.data.config import TransformConfig
from weft.networks.registry import configured
from weft.studies.compare.candidates import Candidate, Facts, group_of, make_candidates
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.run_configs import run_config
from weft.studies.engine import tasks
from weft.studies.engine.runner import Pool, run_jobs
from weft.studies.engine.study import Job, Study
from weft.studies.tune.rate_width_map import metric_of
from weft.training.config import OptimisationConfig, OptimiserName

SETTINGS: tuple[tuple[OptimiserName, float], ...] = (
    *(("adamw", rate) for rate in (1e-3, 3e-3, 1e-2)),
    *(("muon", rate) for rate in (3e-3, 1e-2, 3e-2)),
)
EMBEDDED = ("breast_cancer", "diabetes", "digits", "pydocs")
SIDE, BATCH = 32, 32
PARAMETERS = {"image": 62_500, "vector": 5_000, "text": 250_000, "pair": 250_000}

Results = dict[str, list[tuple[float, float]]]  # network -> validation metric and seconds, a setting each


def measure(source: str, arguments: argparse.Namespace, pool: Pool) -> Results:
    """Train every network with every setting on one source."""
    optimisation = OptimisationConfig(batch_size=BATCH)
    asked = ComparisonConfig(source=source, steps=arguments.steps, optimisation=optimisation)
    facts: Facts = pool.first(tasks.look, run_config(asked, None, 0, 1))
    if facts.modality == "image" and facts.side > SIDE:
        asked = replace(asked, transform=TransformConfig(img_size=SIDE))
        facts = pool.first(tasks.look, run_config(asked, None, 0, 1))
    candidates = [Candidate(name, name, group_of(configured(name))) for name in arguments.models]
    candidates = candidates or make_candidates(
        facts, "families", "params", PARAMETERS[facts.modality], True, False, notes=[]
    )
    cells = {(c.name, s): job(asked, facts, c, s) for c in candidates for s in SETTINGS}
    study = Study(arguments.output / Path(source).name, "learning rates", facts, candidates, list(cells.values()))
    study.save()
    run_jobs(study, pool, study.jobs, lambda line: print(f"{source}: {line}", flush=True))
    return {c.name: [result(study, cells[c.name, s]) for s in SETTINGS] for c in candidates}


def job(asked: ComparisonConfig, facts: Facts, candidate: Candidate, setting: tuple[OptimiserName, float]) -> Job:
    opt, rate = setting
    asked = replace(asked, optimisation=replace(asked.optimisation, opt=opt, lr=rate))
    name = f"{candidate.name} {opt} {rate:g}"
    return Job(name, run_config(asked, candidate, 0, facts.rows), facts.fingerprint)


def result(study: Study, job: Job) -> tuple[float, float]:
    """The metric on the validation split, and the seconds of the run."""
    value, record = metric_of(study, job), study.run_folder(job).record() or {}
    return -np.inf if value is None else value, float(record.get("wall_seconds", 0.0))


def ranks(results: Results) -> np.ndarray:
    """Mean rank of each setting over the networks of a source; equal metrics share their ranks."""
    return np.mean([rankdata([-value for value, _ in cells]) for cells in results.values()], axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("sources", nargs="*")
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("rates"))
    arguments = parser.parse_args()
    with Pool(arguments.jobs) as pool:
        found = {source: measure(source, arguments, pool) for source in arguments.sources or EMBEDDED}
    print(f"\n| source | network | {' | '.join(f'{opt} {rate:g}' for opt, rate in SETTINGS)} |")
    print(f"|---|---|{'---|' * len(SETTINGS)}")
    for source, results in found.items():
        for name, cells in results.items():
            values = " | ".join(f"{value:.3f}, {took:.0f} s" for value, took in cells)
            print(f"| {Path(source).name} | {name} | {values} |")
    overall = np.mean([ranks(results) for results in found.values()], axis=0)
    print(f"| **mean rank** | | {' | '.join(f'{value:.2f}' for value in overall)} |")


if __name__ == "__main__":
    main()
