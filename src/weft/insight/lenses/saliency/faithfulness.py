"""Whether an attribution is true to the network: take away, or put back, what it names first, and watch the answer.

Deletion falls fast and insertion rises fast if the order is good (Petsiuk et al. 2018); a random order is the control.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from weft.insight.lenses.saliency.attribution import Explained

STEPS = 10  # parts in which the units are taken away
CONTROLS = 2  # random orders


@dataclass
class Curves:
    """Sums over examples of the probability of the predicted class, after each part: (STEPS + 1,)."""

    deletion: Tensor
    insertion: Tensor
    count: int = 0

    @classmethod
    def empty(cls) -> Curves:
        return cls(torch.zeros(STEPS + 1, dtype=torch.double), torch.zeros(STEPS + 1, dtype=torch.double))

    def add(self, batch: Explained, order: Tensor) -> None:
        """Follow an order (batch, units) of the units, first named first."""
        rank = order.argsort(dim=1)
        for step in range(STEPS + 1):
            first = rank < (batch.real.sum(1, keepdim=True) * step / STEPS).round()
            self.deletion[step] += batch.probability(batch.with_units(batch.real & ~first)).sum()
            self.insertion[step] += batch.probability(batch.with_units(batch.real & first)).sum()
        self.count += len(order)

    def means(self) -> tuple[list[float], list[float]]:
        """Mean curves: deletion and insertion."""
        return (self.deletion / self.count).tolist(), (self.insertion / self.count).tolist()

    def areas(self) -> tuple[float, float]:
        """Areas under the mean curves, by the trapezium rule."""
        deletion, insertion = (area(torch.tensor(curve)) for curve in self.means())
        return deletion, insertion


def area(curve: Tensor) -> float:
    """Mean height of a curve over equal steps."""
    return float(torch.trapezoid(curve.double(), dx=1 / (len(curve) - 1)))


def ordered(values: Tensor, real: Tensor) -> Tensor:
    """Units by falling value, those that are not real last: (batch, units)."""
    return values.masked_fill(~real, float("-inf")).argsort(dim=1, descending=True, stable=True)


def random_order(real: Tensor, seed: int) -> Tensor:
    """Real units in a random order, the same for the same seed: (batch, units)."""
    return ordered(torch.rand(real.shape, generator=torch.Generator().manual_seed(seed)), real)
