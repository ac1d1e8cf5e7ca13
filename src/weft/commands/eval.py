"""`weft eval`: the metrics of a trained network on its own source or another."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tyro.conf import Positional


@dataclass(frozen=True)
class Arguments:
    """Evaluate a run: weft eval RUN [SOURCE]"""

    run: Positional[Path]
    """Run folder."""
    source: Positional[str | None] = None
    """Source to evaluate on, read as the run's own was (target, inputs, task, bad rows); by default the run's own."""
    split: str = "test"
    """Split of that source: train, validation, test, or one of its own names."""
    batch_size: int = 256
    """Examples at a time; changes nothing but speed and memory."""
    encoder: Path | None = None
    """Where the frozen encoder lies that the network stands on, if it is not in the run's folder."""
    json: bool = False
    """Print JSON, the confusion matrix included."""


def run(arguments: Arguments) -> int:
    """Print the metrics."""
    from weft.training.inference.evaluate import evaluate_run

    metrics = evaluate_run(arguments.run, arguments.source, arguments.split, arguments.batch_size, arguments.encoder)
    if arguments.json:
        print(json.dumps(metrics))
        return 0
    width = max(map(len, metrics)) + 2
    for name, value in metrics.items():
        print(f"{name:<{width}}{shown(value)}")
    return 0


def shown(value: Any) -> str:
    """A metric for reading: numbers to four digits, a confusion matrix row by row."""
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, list) and value and isinstance(value[0], list):
        return "(rows are true classes)\n" + "\n".join("  " + " ".join(f"{n:>6}" for n in row) for row in value)
    return " – ".join(f"{v:.4f}" for v in value) if isinstance(value, list) else str(value)
