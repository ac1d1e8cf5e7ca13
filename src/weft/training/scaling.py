"""Loss scaling for fp16, whose smallest number is 6e-8: gradients are those of a multiple of the loss, divided again.

torch.amp.GradScaler's rule, with its state as plain numbers of the checkpoint, judged by the gradient norm that the
loop takes anyway: halved when the gradient overflows (that step is left out), doubled after 2,000 steps without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

Precision = Literal["float32", "bf16", "fp16"]

START, INTERVAL = 2.0**16, 2000  # GradScaler's


@dataclass
class Scaling:
    """The factor on the loss; part of a checkpoint. Off where numbers are wide enough (float32, bf16)."""

    on: bool = False
    factor: float = 1.0
    streak: int = 0
    """steps since the factor was last changed"""

    def undo(self, net: nn.Module) -> None:
        """Divide the gradients by the factor."""
        if self.on:
            gradients = [p.grad for p in net.parameters() if p.grad is not None]
            torch._foreach_mul_(gradients, 1 / self.factor)

    def overflowed(self, finite: bool) -> bool:
        """Take note of a gradient; True when it is to be left out, False when it is sound or scaling is no remedy."""
        if not self.on:
            return False
        self.streak = self.streak + 1 if finite else 0
        if not finite:
            self.factor /= 2
        elif self.streak == INTERVAL:
            self.factor, self.streak = 2 * self.factor, 0
        return not finite and self.factor >= 1


def scaling_for(precision: Precision) -> Scaling:
    """The scaling that a run in this number format starts with."""
    return Scaling(on=True, factor=START) if precision == "fp16" else Scaling()
