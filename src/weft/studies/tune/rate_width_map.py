"""A map of rates and widths: how much a network minds its settings; Mixer and gMLP are said to mind them most."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from weft import machine
from weft.networks.registry import configured
from weft.studies.compare.candidates import Candidate, Facts, fit_to, group_of, patch
from weft.studies.engine import tasks
from weft.studies.engine.folder_lock import driving
from weft.studies.engine.place import open_pool
from weft.studies.engine.runner import Say, run_jobs
from weft.studies.engine.study import Job, Study
from weft.studies.tune.space import changes
from weft.terminal import how_many
from weft.training.config import RunConfig
from weft.training.storage.record import best_validation

RATES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
WIDTHS = (0.25, 0.5, 1.0, 2.0)  # times the named width


def map_rates(config: RunConfig, models: list[str], folder: Path, say: Say, on: str | None = None) -> dict[str, Any]:
    """Train every network at every rate and width and return the best validation metric of each."""
    asked, timed = config.execution, config.duration.time is not None
    size = None if on or asked.threads is None else max(1, machine.cores() // asked.threads)
    with driving(folder), open_pool(on, folder, say, size, asked.threads, asked.device == "cuda", timed) as pool:
        pool.threads = asked.threads or pool.threads
        facts: Facts = pool.first(tasks.look, config)
        cells = {(model, width, rate): job(config, facts, model, width, rate)
                 for model in models for width in WIDTHS for rate in RATES}  # fmt: skip
        candidates = [Candidate(name, model, group_of(configured(model))) for model in models for name in names(model)]
        study = Study(folder, "rate and width", facts, candidates, list(cells.values()), command="")
        study.save()
        say(f"{how_many(len(cells), 'run')} in {folder}")
        run_jobs(study, pool, study.jobs, say)
    return {
        "source": facts.name,
        "rates": list(RATES),
        "widths": list(WIDTHS),
        "maps": {
            model: [[metric_of(study, cells[model, width, rate]) for rate in RATES] for width in WIDTHS]
            for model in models
        },
    }


def names(model: str) -> list[str]:
    return [f"{model} ×{width:g}" for width in WIDTHS]


def job(config: RunConfig, facts: Facts, model: str, width: float, rate: float) -> Job:
    """One cell of the map."""
    network = fit_to(facts, model, config.network)
    changed = {**patch(facts, model), **config.network, **changes(network, {"width": width})}
    settings = replace(config, model=model, network=changed, optimisation=replace(config.optimisation, lr=rate))
    return Job(f"{model} ×{width:g}", settings, facts.fingerprint)


def metric_of(study: Study, job: Job) -> float | None:
    """The best validation metric of a run, or None if it failed."""
    if not study.finished(job):
        return None
    record = study.run_folder(job).record() or {}
    return best_validation(record)
