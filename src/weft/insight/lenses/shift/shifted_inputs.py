"""Moved inputs: images by pixels, texts by padding; and how far a network's answers stay the same, in sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from weft.data.batch.loader import Batch
from weft.insight.intervals import Ends, change_interval, share_interval
from weft.insight.subject import Subject
from weft.training.metrics import Task

DIRECTIONS = ((0, 1), (0, -1), (1, 0), (-1, 0))  # (rows, columns); example i goes in direction i mod 4
Inputs = dict[str, Tensor]
Mover = Callable[[Batch, int], Inputs]


def moved_images(batch: Batch, by: int) -> Inputs:
    """Images moved by some pixels, a quarter of them each way; the outermost pixels are repeated where none come in."""
    x = batch.inputs["x"]
    height, width = x.shape[2:]
    padded = F.pad(x, (by, by, by, by), mode="replicate")
    moved = torch.empty_like(x)
    for number, (down, right) in enumerate(DIRECTIONS):
        rows = batch.index % len(DIRECTIONS) == number
        top, left = by - by * down, by - by * right
        moved[rows] = padded[rows, :, top : top + height, left : left + width]
    return {"x": moved}


def text_mover(room: int, before: bool) -> Mover:
    """Texts of at most `room` tokens with padding before (it moves the words) or after them (it must not matter)."""

    def move(batch: Batch, by: int) -> Inputs:
        kept = {name: value[:, :room] for name, value in batch.inputs.items()}
        sides = (by, 0) if before else (0, by)
        return {name: F.pad(value, sides, value=False if name == "mask" else 0) for name, value in kept.items()}

    return move


@dataclass
class Tally:
    """Sums over examples from which consistency and metric follow, however many examples there are."""

    task: Task
    examples: int = 0
    same: float = 0.0
    right: float = 0.0
    spread: float = 0.0
    total: float = 0.0
    gained: int = 0  # answers that became right, and that became wrong
    lost: int = 0

    def add(self, before: Tensor, after: Tensor, targets: Tensor) -> None:
        """Outputs (batch, K) for the input as it was and moved."""
        self.examples += len(targets)
        if self.task == "regression":
            still, now = before.double().squeeze(1), after.double().squeeze(1)
            self.same += float((still - now).square().sum())
            self.right += float((now - targets.double()).square().sum())
            self.spread += float(still.square().sum())
            self.total += float(still.sum())
            return
        was, now_right = (answers(outputs) == targets.long() for outputs in (before, after))
        self.same += float((answers(before) == answers(after)).sum())
        self.right += float(now_right.sum())
        self.gained += int((now_right & ~was).sum())
        self.lost += int((was & ~now_right).sum())

    @property
    def consistency(self) -> float:
        """Share of answers that stayed the same; of numbers, the share of their variance that did."""
        if self.task != "regression":
            return self.same / self.examples
        variance = self.spread - self.total**2 / self.examples
        return 1 - self.same / variance if variance > 0 else 0.0

    def change(self) -> Ends | None:
        """The 95 % interval of the change of accuracy; None for numbers."""
        return None if self.task == "regression" else change_interval(self.gained, self.lost, self.examples)

    def interval(self, figure: str) -> Ends | None:
        """The 95 % interval of the share of answers that stayed (`consistency`) or were right (`score`)."""
        if self.task == "regression":
            return None
        return share_interval(self.same if figure == "consistency" else self.right, self.examples)

    @property
    def score(self) -> float:
        """Accuracy; of numbers, the root mean square error."""
        mean = self.right / self.examples
        return mean**0.5 if self.task == "regression" else mean


def answers(outputs: Tensor) -> Tensor:
    """Class numbers: of one logit by its sign, else the largest."""
    return (outputs.squeeze(1) > 0).long() if outputs.shape[1] == 1 else outputs.argmax(1)


@torch.no_grad()
def tallied(subject: Subject, move: Mover, shifts: list[int], examples: int) -> list[Tally]:
    """One tally a shift; the first shift is 0, which the others are compared with."""
    tallies = [Tally(subject.card.task) for _ in shifts]
    objective = subject.card.objective()
    for batch in subject.batches(examples):
        still = objective.answers(subject.network(**move(batch, 0)))
        for by, tally in zip(shifts, tallies, strict=True):
            now = still if by == 0 else objective.answers(subject.network(**move(batch, by)))
            tally.add(still, now, batch.targets)
    return tallies
