"""The curves of a finished run: training and validation loss by epoch as a picture, and over-fitting by its name.

A network over-fits when it goes on getting better on what it learns from and worse on what it does not. The best step
is kept all the same; but the gap tells that fewer steps, more rows or more augmentation would serve as well or better.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from weft.disk import write_bytes
from weft.report.curves import curves
from weft.report.standalone import standalone

FILE = "curves.svg"
FEWEST = 3  # evaluations that make a curve
RISE = 1.05  # of the validation loss over its least, which is more than its noise from step to step
APART = 2.0  # times the training loss, at which the gap is named though the validation loss does not rise

Record = dict[str, Any]


def points(record: Record) -> list[dict[str, float]]:
    """Evaluations with both losses, in order."""
    evaluations = (event for event in record.get("curve", []) if event["kind"] == "evaluation")
    return [event for event in evaluations if all(map(is_number, map(event.get, ("train_loss", "validation_loss"))))]


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def overfitting(record: Record) -> str | None:
    """A sentence on the gap between training and validation loss where there is over-fitting, else None."""
    found = points(record)
    if len(found) < FEWEST:
        return None
    least, last = min(found, key=lambda event: event["validation_loss"]), found[-1]
    train, held = last["train_loss"], last["validation_loss"]
    remedy = "more rows, more augmentation or more --weight-decay would help"
    if held > RISE * least["validation_loss"] and train < least["train_loss"]:
        return (
            f"over-fitting: after epoch {least['epoch']:.3g} the validation loss rose from "
            f"{least['validation_loss']:.3g} to {held:.3g} while the training loss fell from {least['train_loss']:.3g} "
            f"to {train:.3g}; the best step, {record.get('best_step')}, is kept; fewer --epochs, {remedy}"
        )
    if held > 0 and train < held / APART:
        return f"over-fitting: training loss {train:.3g}, validation loss {held:.3g} at the end; {remedy}"
    return None


def draw_curves(folder: Path, record: Record) -> None:
    """Write the picture of a run that has been evaluated often enough."""
    found = points(record)
    if len(found) < FEWEST:
        return
    epochs = [event["epoch"] for event in found]
    series = {
        "training": (epochs, [event["train_loss"] for event in found]),
        "validation": (epochs, [event["validation_loss"] for event in found]),
    }
    said = overfitting(record) or f"training and validation loss over {epochs[-1]:.3g} epochs"
    write_bytes(folder / FILE, standalone(curves(series, ("epoch", "loss"), said)).encode())
