"""The tasks and their losses (F3): binary, K-class and regression, each as one value per example.

Sums and counts are left to the caller, so that the loss of a batch spread over processes is the global sum over the
global count.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor
from torch.nn import functional as F

Task = Literal["binary", "classes", "regression"]


def outputs_for(task: Task, classes: int) -> int:
    """How many outputs a network needs: one logit, K logits, or one linear value."""
    return classes if task == "classes" else 1


def example_losses(task: Task, outputs: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """Loss of each example, shape (batch,).

    binary: outputs (batch, 1), targets (batch,) in [0, 1]; −y log p − (1−y) log(1−p) with p = logistic(output).
    classes: outputs (batch, K), targets (batch,) class numbers, or (batch, K) probabilities; −Σ y log softmax(output).
    regression: outputs (batch, …), targets of the same size; the mean of (output − target)² over an example's values.
    """
    if task == "binary":
        soft = targets.to(outputs.dtype) * (1 - smoothing) + 0.5 * smoothing
        return F.binary_cross_entropy_with_logits(outputs.squeeze(1), soft, reduction="none")
    if task == "classes":
        return F.cross_entropy(outputs, targets, reduction="none", label_smoothing=smoothing)
    difference = outputs - targets.to(outputs.dtype).view_as(outputs)
    return difference.square().flatten(1).mean(1)
