"""One run of a study in its folder: started, or continued where it was interrupted."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from weft import machine
from weft.studies.engine.data_facts import data_of
from weft.training.baseline import run_baseline
from weft.training.config import RunConfig, is_fitted
from weft.training.features.linear import one_thread
from weft.training.loop.display import Plain
from weft.training.loop.events import TrainingFailed
from weft.training.run import lifecycle
from weft.training.run.kinds import AnyConfig
from weft.training.run.plan import Plan, Timing
from weft.training.storage.run_folder import RunBusy, RunFolder

HELD = 3.0  # seconds to wait for a run that another process has: a dead study's worker frees it within one


def run_one(config: AnyConfig, path: Path, known: Plan | Timing | None = None) -> str:
    """Start or continue the run in `path`. Returns finished, failed or interrupted; the record tells more.

    `held` is the answer where another process has the run. `known` is a plan, or steps, measured for such a run before.
    """
    if not is_free(path):
        return "held"
    opened = data_of(config)
    machine.forget_peak()
    if is_fitted(config.model):
        assert isinstance(config, RunConfig)
        with one_thread() if config.execution.threads == 1 else nullcontext():
            run_baseline(config, path, *opened)
        return "finished"
    try:
        if (path / "run.yaml").is_file():
            outcome = lifecycle.resume(path, Plain(), config.execution, opened)
        else:
            outcome = lifecycle.start(config, path, Plain(), opened, known)
    except TrainingFailed:
        return "failed"
    except RunBusy:
        return "held"
    return "interrupted" if outcome.record is None else str(outcome.record["status"])


def is_free(path: Path) -> bool:
    """Whether no other process trains in the folder, or the one that does is about to end."""
    if not (path / "run.yaml").is_file():
        return True
    try:
        with RunFolder(path).lock(HELD):
            return True
    except RunBusy:
        return False
