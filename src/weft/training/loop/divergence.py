"""Notices when training goes wrong: a loss that is not a number, divergence, or never doing better than a guess.

Judged on sums over all ranks at steps that depend on the plan alone, so that a resumed run judges alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

DIVERGED = 3.0  # times the larger of first loss and guess: far above what noise does to a healthy run
LEARNING = 0.98  # below this share of the guess's loss a network has seen something in its inputs
COLLAPSED = 0.5  # a network that was below this share and is back at the guess has lost what it knew
FALLEN = 0.8  # below this share of its first loss a network has learnt something, if only how rare a class is
RESTING = 10  # judgements without a lower loss after which it is at rest, not on its way down
ENOUGH = 100.0  # examples of equal weight whose mean tells these shares apart

Kind = Literal["not a number", "diverged", "never left chance"]


@dataclass(frozen=True)
class TrainingIssue:
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
class DivergenceMonitor:
    """What has been seen so far; part of a checkpoint."""

    first: float | None = None
    lowest: float = math.inf
    beats_constant_guess: bool = False
    low: float = math.inf
    """the loss when it last fell noticeably, and for how many judgements that counts as falling"""
    falling: int = 0
    evidence: float = 0.0
    """examples of equal weight since the network was last compared with a guess, and the losses of both on them"""
    loss: float = 0.0
    chance: float = 0.0

    def judge(
        self, loss: float, guess: float, patient: bool, chance: float | None = None, evidence: float = ENOUGH
    ) -> Kind | None:
        """What is wrong with the mean loss since the last judgement; while `patient`, chance is no trouble yet.

        `guess` is the loss of a constant answer on all examples and `chance` on these, which differ where a few
        examples (of a rare class, or far out) carry most of it; `evidence` says how many these amount to.
        """
        if not math.isfinite(loss):
            return "not a number"
        chance = guess if chance is None else chance
        usual = max(guess, chance)
        self.first = loss if self.first is None else self.first
        self.beats_constant_guess = self.beats_constant_guess or loss < LEARNING * usual
        patient = self.fell(loss) or patient or loss < FALLEN * self.first
        if self.collapsed(loss, chance, guess, evidence) or loss > DIVERGED * max(self.first, usual):
            return "diverged"
        if not self.beats_constant_guess and not patient:
            return "never left chance"
        return None

    def fell(self, loss: float) -> bool:
        """Whether the loss has lately fallen: from even odds down to the guess of a rare class is a long way."""
        lower = loss < LEARNING * self.low
        self.falling = RESTING if lower and self.low < math.inf else max(0, self.falling - 1)
        self.low = loss if lower else self.low
        return self.falling > 0

    def collapsed(self, loss: float, chance: float, guess: float, evidence: float) -> bool:
        """Whether a network that knew much is back at the guess; asked whenever enough was seen to tell."""
        self.loss, self.chance, self.evidence = self.loss + loss, self.chance + chance, self.evidence + evidence
        if self.evidence < ENOUGH:
            return False
        typical = guess * self.loss / max(self.chance, 1e-12)  # the loss, were these examples like all others
        before, self.lowest = self.lowest, min(self.lowest, typical)
        self.loss, self.chance, self.evidence = 0.0, 0.0, 0.0
        return before < COLLAPSED * guess and typical > LEARNING * guess


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


# ---- Norms of gradients, weights and updates, a layer at a time: where training is stuck or about to blow up.

Norms = dict[str, dict[str, float]]  # kind of norm -> layer -> value


def layer_of(parameter: str) -> str:
    """The layer that a parameter belongs to: `blocks.3.mlp.fc1.weight` is in `blocks.3.mlp.fc1`."""
    return parameter.rpartition(".")[0] or parameter


def by_layer(tensors: dict[str, Tensor]) -> dict[str, float]:
    """Norm of each layer's tensors together, to five digits: there are thousands of them in a run's journal."""
    if not tensors:
        return {}
    norms = torch.stack([whole_norm(norm) for norm in torch._foreach_norm(list(tensors.values()))])
    squares: dict[str, float] = {}
    for name, norm in zip(tensors, norms.double().tolist(), strict=True):
        squares[layer_of(name)] = squares.get(layer_of(name), 0.0) + norm * norm
    return {layer: float(f"{square**0.5:.5g}") for layer, square in squares.items()}


def whole_norm(norm: Tensor) -> Tensor:
    """The norm over all ranks of a sharded tensor's norm; others as they are."""
    full: Tensor = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
    return full


class NormProbe:
    """Measures one step: made before the update, asked after it."""

    def __init__(self, net: nn.Module) -> None:
        self._parameters = {name: p for name, p in net.named_parameters() if p.grad is not None}
        gradients = {name: p.grad for name, p in self._parameters.items() if p.grad is not None}
        self._gradient = by_layer(gradients)
        self._before = {name: p.detach().clone() for name, p in self._parameters.items()}

    def after(self) -> Norms:
        """Norms by kind and layer."""
        now = {name: p.detach() for name, p in self._parameters.items()}
        moved = torch._foreach_sub(list(now.values()), list(self._before.values()))
        return {
            "gradient_norm": self._gradient,
            "weight_norm": by_layer(now),
            "update_norm": by_layer(dict(zip(now, moved, strict=True))),
        }
