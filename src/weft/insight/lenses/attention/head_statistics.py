"""Figures of attention heads, averaged over data one batch at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from weft.insight.lenses.attention import map_statistics
from weft.insight.lenses.gates.token_matrices import Means
from weft.insight.subject import Subject
from weft.nn.attention import Attention


@dataclass(frozen=True)
class Head:
    """A head, on average over examples and tokens.

    `distance` in tokens and `entropy` in bits; `fixed` is the share of the maps' energy that their mean has: 1 where a
    head does the same for every input, as a gate does. None for texts, which differ in length.
    """

    layer: str
    head: int
    distance: float
    entropy: float
    fixed: float | None

    def row(self) -> list[Any]:
        return [self.layer, self.head, self.distance, self.entropy, 2**self.entropy, self.fixed]


class HeadSums:
    """Sums over examples of what `Head` averages, a row a head."""

    def __init__(self, subject: Subject) -> None:
        self.layout: Any = subject.network.layout
        self.sums: dict[str, Tensor] = {}  # (heads, 3): distance, entropy, energy
        self.count: dict[str, int] = {}

    def see(self, name: str, seen: Tensor, mask: Tensor | None) -> None:
        """Add the maps (batch, heads, tokens, tokens) of one layer."""
        figures = [
            map_statistics.mean_distance(seen, self.layout, mask),
            map_statistics.entropy(seen, mask),
            seen.square().sum((2, 3)),
        ]
        total = torch.stack([figure.double().sum(0) for figure in figures], dim=1)
        self.sums[name] = self.sums[name] + total if name in self.sums else total
        self.count[name] = self.count.get(name, 0) + len(seen)

    def heads(self, name: str, halves: tuple[Tensor, Tensor] | None) -> list[Head]:
        """The heads of a layer with the mean maps (heads, tokens, tokens) over two halves of the examples, if known.

        The product of the halves is the energy of the mean, without that of the noise in either.
        """
        found = []
        for number, (distance, entropy, energy) in enumerate((self.sums[name] / self.count[name]).tolist()):
            fixed = None if halves is None else float((halves[0][number] * halves[1][number]).sum()) / energy
            found.append(Head(name, number + 1, distance, entropy, fixed))
        return found


def watch_heads(subject: Subject, layers: dict[str, Attention], examples: int) -> tuple[list[Head], dict[str, Tensor]]:
    """Every head's figures, and the mean maps of each layer: (heads, tokens, tokens)."""
    sums = HeadSums(subject)
    means = Means(subject, layers, examples, sums.see)
    mean = {name: means.matrices(name, layer) for name, layer in layers.items()}
    text = subject.config.input == "text"
    heads = [head for name in layers for head in sums.heads(name, None if text else means.halves(name))]
    return heads, mean
