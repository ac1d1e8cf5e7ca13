"""What came out of a run: record.json, with all that is needed to judge and repeat it, and predictions.safetensors.

`predictions.safetensors` is what the run says of every example of the test split, for statistics over examples:
`predicted` (n,) is the class, or the value for regression; `confidence` (n,) the probability of that class, 1 for
regression; `target` (n,) what would have been right. Rows of a source with groups have the number of their `group`
(n,), and those of a fold their `row` in the source. Both are read without torch.
"""

from __future__ import annotations

import math
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from safetensors import SafetensorError
from safetensors.numpy import load, save

from weft import __version__, machine
from weft.disk import Damaged, brief, read_bytes, read_object, validated, write_bytes
from weft.training.config import to_dict
from weft.training.storage.metrics_log import Count, Number, read_events

if TYPE_CHECKING:
    from torch import Tensor

    from weft.data.open.source import Source
    from weft.training.loop.progress import Progress
    from weft.training.run.context import Run

FILE = "predictions.safetensors"
NAMES = ("predicted", "confidence", "target")
COUNTED = 100  # classes above which a record holds no confusions, a million numbers for a thousand: answers have them
Predictions = dict[str, NDArray[Any]]


def make_record(run: Run, progress: Progress, folder: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """The record of a run that ended; `facts` adds status, metrics, source and network."""
    examples = progress.step * run.config.optimisation.batch
    return {
        "beats_constant_guess": progress.watch.beats_constant_guess,
        **facts,
        "kind": run.config.kind,
        "config": to_dict(run.config),
        "plan": to_dict(run.plan),
        "environment": environment(run),
        "steps": progress.step,
        "epochs": progress.step / run.plan.steps_per_epoch,
        "best_step": progress.best.step,
        "rollbacks": progress.rollbacks,
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
    import torch

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


@dataclass
class Data:
    """What a record says of its source."""

    name: str
    fingerprint: str
    notes: list[str]


@dataclass
class Point:
    """A point of the curve."""

    kind: str
    step: Count
    epoch: Number | None = None
    loss: Number | None = None
    validation_metric: Number | None = None
    seconds: Number | None = None

    def __post_init__(self) -> None:
        needed = {"train": ("epoch", "loss"), "evaluation": ("epoch", "validation_metric")}.get(self.kind, ())
        for name in needed:
            if getattr(self, name) is None:
                raise ValueError(f"a point of kind {self.kind} has no {name}")


@dataclass
class Measured:
    """Metrics that are more than numbers, or that a verdict rests on."""

    accuracy: Number = 0.0
    chance: Number = 0.0
    accuracy_interval: Annotated[list[Number], Field(min_length=2, max_length=2)] = field(default_factory=list)
    confusion: list[list[Count]] = field(default_factory=list)
    never_answered: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if any(len(row) != len(self.confusion) for row in self.confusion):
            raise ValueError("confusion: its rows and columns are not those of the same classes")


@dataclass
class Place:
    """Where a run was computed."""

    threads: Annotated[int, Field(ge=1, le=1 << 20)] = 1


@dataclass
class Asked:
    """What a record repeats of its configuration, as far as tables need it."""

    seed: Count
    model: str
    source: str
    network: dict[str, Any]
    reading: dict[str, Any] = field(default_factory=dict)
    transform: dict[str, Any] = field(default_factory=dict)
    augment: dict[str, Any] = field(default_factory=dict)
    optimisation: dict[str, Any] = field(default_factory=dict)
    objective: dict[str, Any] = field(default_factory=dict)
    duration: dict[str, Any] = field(default_factory=dict)
    execution: dict[str, Any] = field(default_factory=dict)


@dataclass
class Record:
    """What every record has; there may be more in it."""

    status: Literal["finished", "failed"]
    metric: str
    metrics: dict[str, Any]
    config: Asked
    source: Data
    parameters: Count
    curve: list[Point]
    steps: Count
    wall_seconds: Number
    cost: Number
    environment: Place = field(default_factory=Place)
    beats_constant_guess: bool = True
    learnt: dict[str, Any] = field(default_factory=dict)
    multiply_adds: Count = 0
    throughput: Number = 0.0
    cpu_seconds: Number = 0.0
    peak_memory: Count = 0
    reason: str = ""


def read_record(path: Path) -> dict[str, Any]:
    """The record in a file, or `Damaged` with the field that is wrong."""
    content = read_object(path)
    checked = validated(Record, content, path)
    validated(Measured, checked.metrics, f"{path}: metrics")
    if checked.status == "finished":
        validated(Number, checked.metrics.get(checked.metric), f"{path}: metrics.{checked.metric[:40]}")
    return content


def best_validation(record: dict[str, Any]) -> float:
    """The best metric on the validation split, which chose the weights that are kept; -inf where there is none."""
    return max((e["validation_metric"] for e in record["curve"] if "validation_metric" in e), default=-math.inf)


def predictions(task: str, outputs: Tensor, targets: Tensor) -> Predictions:
    """Predictions from a network's answers: outputs (n, K), or (n, 1) for binary and regression; targets (n,)."""
    from weft.training.metrics import class_probabilities

    if task == "regression":
        values = outputs.flatten(1).squeeze(1).to(targets.dtype).numpy()  # float64 where the targets need it
        return {"predicted": values, "confidence": np.ones(len(values), np.float32), "target": targets.numpy()}
    confidence, numbers = class_probabilities(task, outputs).max(1)  # type: ignore[arg-type]
    return {
        "predicted": numbers.int().numpy(),
        "confidence": confidence.float().numpy(),
        "target": targets.int().numpy(),
    }


def tested_rows(source: Source) -> Predictions:
    """Which rows of the source a fold has tested, by which the folds of a repetition are put together again; and which
    test rows are of one group, and so not independent."""
    split = source.splits["test"]
    rows = getattr(split, "rows", None)  # a streamed one has none, nor folds
    if rows is None:
        return {}
    found: Predictions = {} if source.config.folds is None else {"row": rows.astype(np.int64)}
    groups = getattr(getattr(split, "table", None), "groups", None)
    if groups is not None:
        found["group"] = np.unique([str(value) for value in groups], return_inverse=True)[1][rows].astype(np.int64)
    return found


def write_predictions(folder: Path, content: Predictions) -> None:
    """Store predictions in a run folder."""
    write_bytes(folder / FILE, save({name: np.ascontiguousarray(values) for name, values in content.items()}))


def read_predictions(folder: Path, names: Sequence[str] = NAMES) -> Predictions:
    """The predictions of a run folder; a run that is judged otherwise keeps a number an example under other `names`."""
    try:
        found = load(read_bytes(folder / FILE))
    except (Damaged, ValueError, SafetensorError) as error:
        raise Damaged(
            f"{folder / FILE} cannot be read ({brief(error)}); run `weft train` again for this row"
        ) from error
    shapes = [found[name].shape if name in found else () for name in names]
    if len(set(shapes)) != 1 or len(shapes[0]) != 1 or any(found[name].dtype.kind not in "if" for name in names):
        raise Damaged(f"{folder / FILE} does not hold {', '.join(names)} of each example; run `weft train` again")
    if names is NAMES and found["target"].dtype.kind == "i" and not are_classes(found["predicted"], found["target"]):
        raise Damaged(f"{folder / FILE} holds answers that are no classes; run `weft train` again")
    return found


def are_classes(*values: NDArray[Any]) -> bool:
    """Whether numbers can be those of classes, counted from 0."""
    return all(each.dtype.kind == "i" and (not len(each) or each.min() >= 0) for each in values)
