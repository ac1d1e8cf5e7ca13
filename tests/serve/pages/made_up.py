"""Run folders that nobody trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from studies.fabricated import record
from weft.training.config import RunConfig
from weft.training.storage.run_folder import RunFolder


def points(count: int) -> str:
    """A metrics.jsonl of so many steps, with an evaluation at every fifth."""
    lines = []
    for step in range(1, count + 1):
        place = {"step": step, "epoch": step / 10, "seconds": step / 2}
        norms = {"head": 3.0, "body": 4.0}
        lines.append({"kind": "train", **place, "loss": 2.3 / step, "lr": 1e-3, "gradient_norm": norms})
        if step % 5 == 0:
            found = {"validation_loss": 2.0 / step, "validation_metric": 1 - 1 / step}
            lines.append({"kind": "evaluation", **place, **found})
    return "".join(json.dumps(line) + "\n" for line in lines)


def make_run(folder: Path, seed: int = 0, accuracy: float | None = 0.9, steps: int = 20, **changes: Any) -> Path:
    """A run folder, without a record where there is no accuracy."""
    config = RunConfig(source="digits", model="mlp", seed=seed)
    folder.mkdir(parents=True)
    RunFolder(folder).write_asked(config)
    (folder / "metrics.jsonl").write_text(points(steps))
    if accuracy is not None:
        content = record(config, accuracy, **{"steps": steps, **changes})
        (folder / "record.json").write_text(json.dumps(content, indent=2))
    return folder
