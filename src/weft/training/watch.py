"""Notices when training goes wrong: a loss that is not a number, divergence, or never doing better than a guess.

Judged on sums over all ranks at steps that depend on the plan alone, so that a resumed run judges alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from weft.training.norms import Norms

DIVERGED = 3.0  # times the larger of first loss and guess: far above what noise does to a healthy run
LEARNING = 0.98  # below this share of the guess's loss a network has seen something in its inputs
COLLAPSED = 0.5  # a network that was below this share and is back at the guess has lost what it knew

Kind = Literal["not a number", "diverged", "never left chance"]


@dataclass(frozen=True)
class Trouble:
    """What went wrong, where and when."""

    kind: Kind
    step: int
    layer: str
    loss: float

    def __str__(self) -> str:
        what = {
            "not a number": f"the loss or its gradient is not a number, first in {self.layer}",
            "diverged": f"training diverged (loss {self.loss:.3g}); {self.layer} moved most for its size",
            "never left chance": f"the loss {self.loss:.3g} is that of a guess; {self.layer} gets the least gradient",
        }[self.kind]
        return f"step {self.step}: {what}"


@dataclass
class Watch:
    """What has been seen so far; part of a checkpoint."""

    first: float | None = None
    lowest: float = math.inf
    left_chance: bool = False

    def judge(self, loss: float, guess: float, patient: bool) -> Kind | None:
        """What is wrong with the mean loss since the last judgement; while `patient`, chance is no trouble yet."""
        if not math.isfinite(loss):
            return "not a number"
        self.first = loss if self.first is None else self.first
        before, self.lowest = self.lowest, min(self.lowest, loss)
        self.left_chance = self.left_chance or loss < LEARNING * guess
        collapsed = before < COLLAPSED * guess and loss > LEARNING * guess
        if loss > DIVERGED * max(self.first, guess) or collapsed:
            return "diverged"
        if not self.left_chance and not patient:
            return "never left chance"
        return None


def concerned(kind: Kind, norms: Norms) -> str:
    """The layer to name: the first not finite, the one that moved most for its size, or got the least gradient."""
    gradient, weight, update = (norms.get(name, {}) for name in ("gradient_norm", "weight_norm", "update_norm"))
    if not gradient:
        return "the network"
    if kind == "not a number":
        return next((layer for layer, norm in gradient.items() if not math.isfinite(norm)), "the loss")
    if kind == "diverged":
        return max(weight, key=lambda layer: update[layer] / (weight[layer] + 1e-12))
    return min(weight, key=lambda layer: gradient[layer] / (weight[layer] + 1e-12))


def at_chance(record: dict[str, Any]) -> str | None:
    """A sentence about a finished run that learnt nothing, by its training loss or by its answers; else None."""
    if not record.get("left_chance", True):
        return "it never left chance: the training loss stayed that of a guess"
    metrics = record["metrics"]
    chance, low = metrics.get("chance"), metrics.get("accuracy_interval", [1.0])[0]
    if chance is not None and low <= chance:
        return (
            f"it never left chance: {metrics['accuracy']:.1%} is no more than naming the commonest class ({chance:.1%})"
        )
    return None
