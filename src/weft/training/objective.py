"""What is minimised: the sum of example losses over a count, both global, whatever the number of processes.

A micro-batch contributes `share(...)`: its sum over the count of the whole batch. Shares of all micro-batches and
ranks add up to the loss of the batch, so their gradients add up to its gradient. The tasks are binary, K-class and
regression, each with one loss per example.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from weft.data.open.labels import NARROW
from weft.errors import WeftError
from weft.training.metrics import HEADLINE, Task, headline, score


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


class Goal(Protocol):
    """What the loop and the evaluations ask of an objective. Outputs (n, …) and targets (n, …) are a network's and a
    batch's, of a micro-batch or of a whole split; what they hold is between the network and its objective."""

    @property
    def guess(self) -> float:
        """Loss of the best answer that does not look at the inputs."""

    @property
    def spread(self) -> float:
        """How unevenly that loss falls on examples: 1 when on all alike, 100 when one in a hundred carries it."""

    @property
    def metric(self) -> str:
        """Name of the number that choices go by."""

    @property
    def lower_is_better(self) -> bool:
        """Whether a smaller headline wins."""

    def count(self, targets: Tensor, size: int, add: Callable[[Tensor], Tensor]) -> Tensor | int:
        """What the sums of a batch are divided by; `size` is its number of examples and `add` sums over ranks."""

    def share(self, outputs: Tensor, targets: Tensor, count: Tensor | int) -> Tensor:
        """Contribution of a micro-batch to the loss of its batch: ()."""

    def chance(self, targets: Tensor, count: Tensor | int) -> Tensor:
        """What `share` would be for the answer that does not look at the inputs: ()."""

    def mean_loss(self, outputs: Tensor, targets: Tensor) -> float:
        """Loss over a whole split."""

    def headline(self, outputs: Tensor, targets: Tensor) -> float:
        """The number that choices go by, over a whole split."""


@dataclass(frozen=True)
class Objective:
    """The loss of a task. `weights` is (K,), one factor a class, or None.

    Numbers to predict are brought to mean 0 and deviation 1 by `centre` and `scale`, those of the training split, so
    that one rate suits every unit; `answers` turns outputs back.
    """

    task: Task
    smoothing: float = 0.0
    weights: Tensor | None = None
    centre: float = 0.0
    scale: float = 1.0
    guess: float = math.inf
    """loss of the best constant answer: a network that stays there has learnt nothing from its inputs"""
    constant: Tensor = field(default_factory=lambda: torch.zeros(1))
    """that answer, as a network's outputs for one example"""
    spread: float = 1.0
    chosen: str | None = None
    """metric that was asked for in place of accuracy or R²"""
    lower_is_better = False

    @property
    def metric(self) -> str:
        return self.chosen or HEADLINE[self.task]

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Weighted loss of each example: (batch,)."""
        if self.task == "regression":
            targets = ((targets - self.centre) / self.scale).float()  # wide targets come as float64
        losses = example_losses(self.task, outputs.float(), targets, self.smoothing)
        return losses if self.weights is None else losses * self.example_weights(targets)

    def answers(self, outputs: Tensor) -> Tensor:
        """Outputs in the unit of the targets, as float64 where float32 would lose their digits; logits as they are."""
        if self.task != "regression":
            return outputs
        wide = abs(self.centre) > NARROW * self.scale
        return (outputs.double() if wide else outputs) * self.scale + self.centre

    def example_weights(self, targets: Tensor) -> Tensor:
        """Weight of each example: of its class, or of its mixture of classes: (batch,)."""
        if self.weights is None:
            return torch.ones(len(targets), device=targets.device)
        weights = self.weights.to(targets.device)
        if self.task == "binary":
            return weights[0] + targets * (weights[1] - weights[0])
        return targets @ weights if targets.ndim == 2 else weights[targets]

    def count(self, targets: Tensor, size: int, add: Callable[[Tensor], Tensor]) -> Tensor | int:
        """Sum of the example weights of a batch over all ranks."""
        return size if self.weights is None else add(self.example_weights(targets).sum())

    def share(self, outputs: Tensor, targets: Tensor, count: Tensor | int) -> Tensor:
        """Contribution of a micro-batch to the loss of a batch whose example weights sum to `count`: ()."""
        return self.losses(outputs, targets).sum() / count

    def chance(self, targets: Tensor, count: Tensor | int) -> Tensor:
        """What `share` is for the best constant answer: ()."""
        return self.share(self.constant.to(targets.device).expand(len(targets), -1), targets, count)

    def mean_loss(self, outputs: Tensor, targets: Tensor) -> float:
        """Loss over a whole split, without label smoothing's floor being hidden: the training objective itself."""
        weight = self.example_weights(targets).sum()
        return float(self.losses(outputs, targets).double().sum() / weight)

    def headline(self, outputs: Tensor, targets: Tensor) -> float:
        if self.chosen is None:
            return headline(self.task, self.answers(outputs), targets)
        return score(self.chosen, self.task, self.answers(outputs), targets)


def create_objective(
    task: str,
    targets: NDArray[Any],
    classes: int = 2,
    smoothing: float = 0.0,
    class_weights: Literal["balanced"] | Sequence[float] | None = None,
) -> Objective:
    """The objective of a task, given the targets (n,) of the training split."""
    if task == "none":
        raise WeftError("the source has no target to learn; name its column with --target")
    if task == "regression":
        if class_weights is not None or smoothing:
            raise WeftError(
                "class weights and label smoothing need classes, and the target is a number: leave them out"
            )
        scale = float(targets.std()) or 1.0
        losses = ((targets - targets.mean()) / scale) ** 2
        return Objective(
            "regression",
            centre=float(targets.mean()),
            scale=scale,
            guess=float(targets.var()) / scale**2,
            spread=unevenness(losses, np.ones(len(losses))),
        )
    counts = np.bincount(targets.astype(np.int64), minlength=classes).astype(np.float64)
    weights = weights_for(counts, class_weights)
    share = counts if weights is None else counts * weights.numpy()
    prior = (1 - smoothing) * share / share.sum() + smoothing / classes
    logs = np.log(prior.clip(1e-12))
    losses = -(1 - smoothing) * logs - smoothing * logs.mean()
    return Objective(
        "binary" if task == "binary" else "classes",
        smoothing,
        weights,
        guess=-float((prior * logs).sum()),
        constant=torch.from_numpy(logs[1:] - logs[:1] if task == "binary" else logs).float(),
        spread=unevenness(losses if weights is None else losses * weights.numpy(), counts),
    )


def unevenness(losses: NDArray[Any], counts: NDArray[Any]) -> float:
    """Mean square over squared mean of losses (K,), each of which occurs so many times: 1 when all are equal."""
    mean = np.average(losses, weights=counts)
    return float(np.average(losses**2, weights=counts) / mean**2) if mean > 0 else 1.0


def weights_for(counts: NDArray[np.float64], asked: Literal["balanced"] | Sequence[float] | None) -> Tensor | None:
    """Factor of each class, (K,), scaled so that the mean weight of an example is 1; None when not asked for."""
    if asked is None:
        return None
    if asked != "balanced" and len(asked) != len(counts):
        raise WeftError(f"{len(asked)} class weights for {len(counts)} classes; give one a class")
    weights = 1 / counts.clip(1) if asked == "balanced" else np.array(asked, dtype=np.float64)
    return torch.from_numpy((weights * counts.sum() / (weights * counts).sum()).astype(np.float32))
