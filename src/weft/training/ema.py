"""A moving average of the weights: smoother than the weights, and what is evaluated and kept when asked for."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class MovingAverage:
    """average ← decay · average + (1 − decay) · weights, of parameters and float buffers.

    The decay is min(decay, (1 + step) / (10 + step)): early on the average follows closely, so that it does not
    remember the initial weights. Integer buffers are copied.
    """

    def __init__(self, net: nn.Module, decay: float) -> None:
        self.decay = decay
        self.average = {name: value.detach().clone() for name, value in net.state_dict().items()}

    @torch.no_grad()
    def update(self, net: nn.Module, step: int) -> None:
        """Take in the weights after the update of `step`."""
        weight = 1 - min(self.decay, (1 + step) / (10 + step))
        current = net.state_dict()
        floats = [name for name, value in self.average.items() if value.is_floating_point()]
        averages: list[Tensor] = [self.average[name] for name in floats]
        torch._foreach_lerp_(averages, [current[name] for name in floats], weight)
        for name in self.average.keys() - set(floats):
            self.average[name].copy_(current[name])
