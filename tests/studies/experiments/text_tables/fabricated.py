"""Experiments that nobody trained: records and losses as the runner would leave them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from weft.networks.measure.cost import total_parameters
from weft.studies.compare.candidates import Candidate, Facts
from weft.studies.engine.study import Job, Study
from weft.studies.experiments.text_tables.forecast import Prediction
from weft.studies.experiments.text_tables.scales import SCALES
from weft.studies.experiments.text_tables.tables import EXPERIMENTS
from weft.training.config import to_dict
from weft.training.pretraining.config import PretrainConfig
from weft.training.storage.record import write_predictions

FACTS = Facts("pydocs", "text", "none", 0, "f" * 32, 900, {"vocab_size": 512, "max_length": 32}, [], ["2 % held out"])


def record(config: Any, **changes: Any) -> dict[str, Any]:
    environment = {"torch": "2.13", "weft": "0.1", "commit": "abc", "processor": "CPU", "cores": 2, "threads": 1}
    return {
        "status": "finished",
        "metric": "perplexity",
        "metrics": {"perplexity": 50.0},
        "source": {"name": "pydocs", "fingerprint": "f" * 32, "notes": []},
        "parameters": 75_000,
        "config": to_dict(config),
        "throughput": 100.0,
        "curve": [],
        "environment": environment,
        "steps": 100,
        "wall_seconds": 11.0,
        "cost": 0.0003,
        **changes,
    }


def make(folder: Path, losses: dict[str, float], seeds: int = 5, name: str = "e4", noise: float = 0.01) -> Study:
    """A finished experiment at smoke scale whose rows have these log-perplexities; rows not named have not run."""
    experiment, scale = EXPERIMENTS[name], SCALES["smoke"]
    candidates = [candidate for candidate in experiment.candidates(scale) if candidate.start == "pretrained"]
    jobs = [
        Job(
            e.name, PretrainConfig(source="pydocs", model=e.model, network=e.network, seed=seed), "f" * 32, "perplexity"
        )
        for seed in range(seeds)
        for e in candidates
    ]
    stored = [
        Candidate(e.name, e.model, "mlp", e.network, True, {"params": total_parameters(e.config(scale))})
        for e in candidates
    ]
    study = Study(
        folder, "table", FACTS, stored, jobs, budget="20 steps", command="weft study run e4 pydocs --scale smoke"
    )
    study.save()
    seconds = {candidate.name: {"perplexity": 10.0} for candidate in candidates}
    Prediction(name, "smoke", {}, 20, seconds, 1, 1, 0.1).save(folder)
    rng = np.random.default_rng(0)
    hardness = rng.normal(0, 0.5, 300)  # some sequences are harder for everyone
    counts = rng.integers(3, 9, 300)
    hardness -= (hardness * counts).sum() / counts.sum()
    for job in jobs:
        if job.candidate in losses:
            finish(study, job, (losses[job.candidate] + hardness + rng.normal(0, noise, 300)) * counts, counts)
    return study


def finish(study: Study, job: Job, losses: np.ndarray, counts: np.ndarray) -> None:
    path = study.run_folder(job).path
    path.mkdir(parents=True)
    write_predictions(path, {"loss": losses.astype(np.float32), "words": counts.astype(np.float32)})
    (path / "record.json").write_text(json.dumps(record(job.config)))
