"""Outputs of a network as answers: labels with scores, the likeliest first, or numbers."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from weft.serve.models import Model, Outputs
from weft.training.metrics import class_probabilities

Function = Literal["softmax", "sigmoid", "none"]
FUNCTIONS = get_args(Function)
TOP = 5  # classes named where nobody says how many


def scores(model: Model, outputs: Outputs, function: Function | None = None) -> NDArray[np.float64]:
    """(n, classes) from the outputs (n, K); `function` replaces that of the network's task."""
    logits = torch.from_numpy(outputs)
    if function is None:
        return class_probabilities(model.engine.card.task, logits).numpy()
    if model.task == "binary":  # one output, in favour of the second class
        logits = torch.cat([torch.zeros_like(logits) if function == "softmax" else -logits, logits], dim=1)
    logits = logits.double()
    if function == "softmax":
        return torch.softmax(logits, dim=1).numpy()
    return torch.sigmoid(logits).numpy() if function == "sigmoid" else logits.numpy()


def ranked(model: Model, row: NDArray[np.float64], top: int = TOP) -> list[dict[str, Any]]:
    """The first `top` classes, the likeliest first."""
    order = np.argsort(-row, kind="stable")[:top]
    return [{"label": model.engine.classes[number], "score": float(row[number])} for number in order.tolist()]


def values(outputs: Outputs) -> list[float]:
    """The numbers of a regression network, from (n, 1)."""
    return [float(value) for value in outputs[:, 0]]
