"""record.json: what came out of a run, with all that is needed to judge and repeat it."""

from __future__ import annotations

import platform
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from weft import __version__, machine
from weft.training.loop.progress import Progress
from weft.training.run.context import Run
from weft.training.storage import yaml_file
from weft.training.storage.metrics_log import read_events


def make_record(run: Run, progress: Progress, folder: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """The record of a run that ended; `facts` adds status, metrics, source and network."""
    examples = progress.step * run.config.optimisation.batch_size
    return {
        **facts,
        "kind": run.config.kind,
        "config": yaml_file.to_dict(run.config),
        "plan": yaml_file.to_dict(run.plan),
        "environment": environment(run),
        "steps": progress.step,
        "epochs": progress.step / run.plan.steps_per_epoch,
        "best_step": progress.best.step,
        "rollbacks": progress.rollbacks,
        "beats_constant_guess": progress.watch.beats_constant_guess,
        "throughput": examples / max(progress.seconds, 1e-9),
        "wall_seconds": progress.seconds,
        "cpu_seconds": progress.cpu_seconds,
        "waiting_share": progress.waited / max(progress.seconds, 1e-9),
        "checkpoint_seconds": progress.saving,
        "checkpoint_share": progress.saving / max(progress.seconds, 1e-9),
        "peak_memory": machine.memory_peak(),
        "cost": progress.seconds / 3600 * run.config.execution.price_per_hour,
        "curve": curve(folder),
    }


def curve(folder: Path) -> list[dict[str, Any]]:
    """The journal without its norms: small enough for tables and charts."""
    events = read_events(folder / "metrics.jsonl")
    return [{name: value for name, value in event.items() if not isinstance(value, dict)} for event in events]


def environment(run: Run) -> dict[str, Any]:
    """Where it was computed."""
    return {
        "weft": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "processor": machine.cpu_model(),
        "device": str(run.team.device),
        "cores": machine.cores(),
        "threads": torch.get_num_threads(),
        "processes": run.team.world,
    }


@lru_cache
def commit() -> str | None:
    """The commit of this checkout of weft, with a + when it has changes; None for an installed package."""
    here = Path(__file__).parent
    try:
        name = subprocess.run(["git", "-C", here, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        changes = subprocess.run(["git", "-C", here, "status", "--porcelain", "-uno"], capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return name.stdout.strip() + ("+" if changes.stdout.strip() else "")
