"""How good predictions are: accuracy with a bootstrap interval, macro-F1, AUROC, R², MAE, confusion, calibration.

The classic ones are scikit-learn's: torchmetrics does not import beside a torchvision that does not fit its torch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft.nn.losses import Task

HEADLINE = {"binary": "accuracy", "classes": "accuracy", "regression": "r2"}

Metrics = dict[str, Any]


def measure(task: Task, outputs: Tensor, targets: Tensor, classes: int = 2) -> Metrics:
    """All metrics of a task. outputs (n, K), or (n, 1) for binary and regression; targets (n,)."""
    if task == "regression":
        return regression(outputs.flatten(1).squeeze(1), targets)
    probabilities = class_probabilities(task, outputs)
    return classification(probabilities, targets.long(), classes)


def headline(task: Task, outputs: Tensor, targets: Tensor) -> float:
    """The one number that choices go by, cheap enough for every epoch: accuracy or R²; higher is better."""
    if task == "regression":
        return r2(outputs.flatten(1).squeeze(1), targets)
    predicted = (outputs.squeeze(1) > 0).long() if task == "binary" else outputs.argmax(1)
    return float((predicted == targets.long()).double().mean())


def class_probabilities(task: Task, outputs: Tensor) -> Tensor:
    """(n, K) probabilities from logits; a binary network's one logit becomes two columns."""
    if task == "binary":
        positive = torch.sigmoid(outputs.squeeze(1).double())
        return torch.stack([1 - positive, positive], dim=1)
    return torch.softmax(outputs.double(), dim=1)


def classification(probabilities: Tensor, targets: Tensor, classes: int) -> Metrics:
    """Metrics of probabilities (n, K) against class numbers (n,)."""
    from sklearn.metrics import confusion_matrix, f1_score, roc_auc_score

    predicted = probabilities.argmax(1)
    correct = (predicted == targets).double()
    labels = list(range(classes))
    result: Metrics = {
        "accuracy": float(correct.mean()),
        "accuracy_interval": bootstrap(correct),
        "macro_f1": float(f1_score(targets, predicted, average="macro", labels=labels, zero_division=0)),
        "calibration_error": calibration_error(probabilities, correct),
        "confusion": confusion_matrix(targets, predicted, labels=labels).tolist(),
    }
    if classes == 2 and len(targets.unique()) == 2 and bool(probabilities.isfinite().all()):
        result["auroc"] = float(roc_auc_score(targets, probabilities[:, 1]))
    return result


def regression(predicted: Tensor, targets: Tensor) -> Metrics:
    """Metrics of predicted values (n,) against targets (n,)."""
    error = (predicted.double() - targets.double()).abs()
    return {
        "r2": r2(predicted, targets),
        "mae": float(error.mean()),
        "mae_interval": bootstrap(error),
        "rmse": float(error.square().mean().sqrt()),
    }


def r2(predicted: Tensor, targets: Tensor) -> float:
    """Share of the targets' variance that is explained; 0 for a constant target, as nothing is to be explained."""
    spread = (targets.double() - targets.double().mean()).square().sum()
    rest = (targets.double() - predicted.double()).square().sum()
    return float(1 - rest / spread) if spread > 0 else 0.0


def bootstrap(values: Tensor, repeats: int = 1000, level: float = 0.95) -> list[float]:
    """Percentile bootstrap interval of the mean of per-example values (n,); seeded, so that it is reproducible."""
    rng = np.random.default_rng(0)
    array = values.double().numpy()
    means = [array[rng.integers(0, len(array), len(array))].mean() for _ in range(repeats)]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return [float(low), float(high)]


def calibration_error(probabilities: Tensor, correct: Tensor, bins: int = 15) -> float:
    """Expected calibration error (Guo et al. 2017): mean gap of confidence and accuracy over equal-width bins."""
    confidence = probabilities.max(1).values
    which = (confidence * bins).ceil().long().sub(1).clamp(0, bins - 1)
    gap = torch.zeros(bins, dtype=torch.double).index_add_(0, which, confidence.double() - correct.double())
    return float(gap.abs().sum() / len(confidence))
