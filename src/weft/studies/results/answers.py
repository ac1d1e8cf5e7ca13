"""Figures of a run's answers to test rows and whether it learnt anything, from its predictions alone, without torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.training.learnt import Learnt, judge_confusion, judge_numbers, matthews_of, ranked
from weft.training.storage.record import Predictions

Counts = NDArray[np.int64]  # (true class, answer)


def confusion(predictions: Predictions, classes: int) -> Counts:
    """How often each of so many true classes (down) got each answer (across)."""
    wanted, said = (predictions[name].astype(np.int64) for name in ("target", "predicted"))
    known = (wanted < classes) & (said < classes)
    return np.bincount(wanted[known] * classes + said[known], minlength=classes**2).reshape(classes, classes)


def occurring(predictions: Predictions) -> tuple[NDArray[np.int64], Counts]:
    """The classes that occur or are answered, and how often each of them got each answer."""
    both = np.stack([predictions[name].astype(np.int64) for name in ("target", "predicted")])
    classes, codes = np.unique(both, return_inverse=True)
    wanted, said = codes.reshape(both.shape)
    return classes, confusion({"target": wanted, "predicted": said}, len(classes))


def balanced_accuracy(counts: Counts) -> float:
    """Mean over the classes that occur of how often they are known."""
    rows = counts.sum(1)
    return float((np.diag(counts)[rows > 0] / rows[rows > 0]).mean())


def macro_f1(counts: Counts) -> float:
    """Mean over the classes that occur or are answered: one that is neither has no F1."""
    either = counts.sum(0) + counts.sum(1)
    return float((2 * np.diag(counts)[either > 0] / either[either > 0]).mean())


def figures(predictions: Predictions, regression: bool) -> dict[str, Any]:
    """The metrics of a record that answers without probabilities tell."""
    if regression:
        error = predictions["predicted"].astype(np.float64) - predictions["target"]
        return {"mae": float(np.abs(error).mean()), "rmse": float(np.sqrt((error**2).mean()))}
    _, counts = occurring(predictions)
    return {
        "accuracy": float(np.trace(counts) / counts.sum()),
        "chance": float(counts.sum(1).max() / counts.sum()),
        "balanced_accuracy": balanced_accuracy(counts),
        "matthews": matthews_of(counts),
        "macro_f1": macro_f1(counts),
    }


def judge(predictions: Predictions, regression: bool, classes: Sequence[str] = ()) -> Learnt:
    """Whether answers to test rows are better than a guess: the class that is commonest, or the mean of the targets."""
    if regression:
        predicted, wanted = (predictions[name].astype(np.float64) for name in ("predicted", "target"))
        return judge_numbers(predicted, wanted, float(wanted.mean()), "test rows")
    numbers, counts = occurring(predictions)
    found = judge_confusion(counts, [classes[n] if n < len(classes) else f"class {n}" for n in numbers])
    if found.learnt or max(len(classes), int(numbers.max(initial=0)) + 1) != 2:
        return found
    second = predictions["predicted"] == 1
    chances = np.where(second, predictions["confidence"], 1 - predictions["confidence"]).astype(np.float64)
    return ranked(found, chances, predictions["target"]) if np.isfinite(chances).all() else found
