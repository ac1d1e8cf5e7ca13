"""Which learning rate suits short runs? Chosen on validation splits alone; the test splits have no say.

    python benchmarks/rates.py [CIFAR10_FOLDER ROTTEN_TOMATOES_FOLDER …] [--steps 300] [--jobs 2] [--output FOLDER]

Trains some networks for `steps` batches of 64 on the embedded sources and on those given (images at a tenth of their
rows, texts cut to 48 tokens), at every rate, and takes the best metric of each run on its validation split. Rates are
ranked for every network (1 is best), ranks averaged over the networks of a source and then over sources. The rate with
the best mean rank is `weft.studies.compare.rate_search.short_run_rate`. The same command goes on where it
was interrupted.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from weft.data.config import TransformConfig
from weft.studies.compare.candidates import Candidate, Facts, make_candidates
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.run_configs import run_config
from weft.studies.engine import tasks
from weft.studies.engine.runner import Pool, run_jobs
from weft.studies.engine.study import Job, Study
from weft.studies.tune.rate_width_map import metric_of
from weft.training.config import OptimisationConfig, ReadingConfig

RATES = (3e-4, 1e-3, 3e-3, 1e-2)
MODELS = {
    "vector": "mlp",
    "image": "mlp,resnet20_cifar,vit_nano_p4_32,mixer_nano_p4_32",
    "text": "conv_text,bert_tiny,gmlp_text_tiny",
}
EMBEDDED = ("breast_cancer", "diabetes", "digits", "pydocs")
LARGE = 10_000  # training rows of images above which a tenth must do
SMALLER: dict[str, dict[str, Any]] = {  # than by default, so that a run takes seconds
    "image": {"amount": "50k", "reading": ReadingConfig(train_fraction=0.1)},
    "text": {"amount": "60k", "transform": TransformConfig(max_length=48, vocab_size=2048)},
}

Metrics = dict[str, list[float]]  # network -> best metric on the validation split, a rate each


def measure(source: str, arguments: argparse.Namespace, pool: Pool) -> Metrics:
    """Train every network at every rate on one source."""
    asked = ComparisonConfig(source=source, steps=arguments.steps, optimisation=OptimisationConfig(batch_size=64))
    facts: Facts = pool.first(tasks.look, run_config(asked, None, 0, 1))
    if facts.modality == "text" or (facts.modality == "image" and facts.rows > LARGE):
        asked = replace(asked, **SMALLER[facts.modality])
        facts = pool.first(tasks.look, run_config(asked, None, 0, 1))
    candidates = make_candidates(facts, MODELS[facts.modality], "params", asked.amount(), False, False)
    cells = {(candidate.name, rate): job(asked, facts, candidate, rate) for candidate in candidates for rate in RATES}
    study = Study(arguments.output / Path(source).name, "learning rates", facts, candidates, list(cells.values()))
    study.save()
    run_jobs(study, pool, study.jobs, lambda line: print(f"{source}: {line}", flush=True))
    found = {
        candidate.name: [metric_of(study, cells[candidate.name, rate]) for rate in RATES] for candidate in candidates
    }
    return {name: [-np.inf if value is None else value for value in values] for name, values in found.items()}


def job(asked: ComparisonConfig, facts: Facts, candidate: Candidate, rate: float) -> Job:
    asked = replace(asked, optimisation=replace(asked.optimisation, lr=rate))
    return Job(f"{candidate.name} {rate:g}", run_config(asked, candidate, 0, facts.rows), facts.fingerprint)


def ranks(metrics: Metrics) -> np.ndarray:
    """Mean rank of each rate over the networks of a source; equal metrics share their ranks."""
    return np.mean([rankdata([-value for value in values]) for values in metrics.values()], axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("sources", nargs="*")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("rates"))
    arguments = parser.parse_args()
    with Pool(arguments.jobs) as pool:
        found = {source: measure(source, arguments, pool) for source in (*EMBEDDED, *arguments.sources)}
    print(f"\n| source | network | {' | '.join(f'{rate:g}' for rate in RATES)} |\n|---|---|{'---|' * len(RATES)}")
    for source, metrics in found.items():
        for name, values in metrics.items():
            print(f"| {Path(source).name} | {name} | {' | '.join(f'{value:.3f}' for value in values)} |")
    overall = np.mean([ranks(metrics) for metrics in found.values()], axis=0)
    print(f"| **mean rank** | | {' | '.join(f'{value:.2f}' for value in overall)} |")
    print(f"\nbest: {RATES[int(overall.argmin())]:g}")


if __name__ == "__main__":
    main()
