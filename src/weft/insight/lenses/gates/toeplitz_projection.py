"""tMLP's claim: a trained gate loses nothing when its W becomes the nearest Toeplitz matrix. Measured as loss.

Each dense gate alone, and all together, beside the control: the nearest Toeplitz matrix of W with its rows shuffled,
which keeps the weights but not where they belong. Where the control costs nothing either, the gate did nothing.
Losses are compared example by example, so that a small change shows on few examples.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor

from weft.insight.finding import Picture, Unfit
from weft.insight.subject import Subject
from weft.insight.toeplitz import Grid, nearest_toeplitz, shuffled_rows
from weft.networks.gmlp import SpatialGate
from weft.nn.spatial import DenseSpatial
from weft.report.chart import WIDTH, fitting, picture, short
from weft.report.words import block, text, width, wrapped

EVERY = "all together"


@dataclass(frozen=True)
class Change:
    """By how much the loss rises: mean over examples, and its standard error."""

    layer: str
    projected: float
    projected_error: float
    shuffled: float
    shuffled_error: float


@dataclass(frozen=True)
class Projection:
    """The loss as trained, over `examples`, and what projecting changes."""

    loss: float
    examples: int
    changes: list[Change]

    def sentence(self) -> str:
        whole = self.changes[-1]
        return (
            f"With every gate replaced by its nearest Toeplitz matrix the loss goes from {self.loss:.3f} to "
            f"{self.loss + whole.projected:.3f} (± {whole.projected_error:.3f}, {self.examples} examples); with that "
            f"of its shuffled rows, to {self.loss + whole.shuffled:.3f}."
        )

    def record(self) -> dict[str, Any]:
        return {"loss": self.loss, "examples": self.examples, "changes": [asdict(change) for change in self.changes]}

    def picture(self) -> Picture:
        return Picture(changes_chart(self), "What the loss gains when W becomes its nearest Toeplitz matrix")


def projected(subject: Subject, examples: int) -> Projection:
    """Project the dense gates of a trained network, and measure its loss on data."""
    found = dense_gates(subject)
    layout: Any = subject.network.layout
    weights = pair_counts(subject, examples) if subject.config.input == "text" else None
    near = {name: toeplitz_of(gate.weight, layout.grid, layout.extra, weights) for name, gate in found.items()}
    far = {
        name: toeplitz_of(shuffled_rows(gate.weight.detach()), layout.grid, layout.extra, weights)
        for name, gate in found.items()
    }
    trials: list[dict[str, Tensor]] = []
    for name in found:
        trials += [{name: near[name]}, {name: far[name]}]
    loss, count, rises = measure(subject, found, [*trials, near, far], examples)
    changes = [Change(layer, *rises[2 * n], *rises[2 * n + 1]) for n, layer in enumerate([*found, EVERY])]
    return Projection(loss, count, changes)


def dense_gates(subject: Subject) -> dict[str, DenseSpatial]:
    """The gates that have a matrix to be projected."""
    gates = {name: layer.spatial for name, layer in subject.network.named_modules() if isinstance(layer, SpatialGate)}
    found = {name: spatial for name, spatial in gates.items() if isinstance(spatial, DenseSpatial)}
    if not found:
        why = "its gates are Toeplitz already" if gates else "it has no gates"
        raise Unfit(f"there is nothing to project in {subject.name}: {why}; --project is for gMLP and aMLP")
    return found


def toeplitz_of(weight: Tensor, grid: Grid, extra: int, counts: Tensor | None) -> Tensor:
    """W with its nearest Toeplitz matrix over the grid in place; weights on class tokens stay as they are.

    The matrix of a text network is nearest where texts are: an entry counts as often as its two tokens occur together.
    """
    result = weight.detach().clone()
    inner = result[extra:, extra:]
    if counts is None:
        inner.copy_(nearest_toeplitz(inner.double(), grid))
        return result
    above, below = (nearest_toeplitz(each.double(), (prod(grid),)) for each in (inner * counts, counts))
    inner.copy_(torch.where(below > 0, above / below.clamp(min=1e-12), inner))
    return result


def pair_counts(subject: Subject, examples: int) -> Tensor:
    """In how many texts each two tokens occur together: (max_length, max_length)."""
    length: int = subject.config.max_length  # type: ignore[attr-defined]
    counts = torch.zeros(length, length)
    for batch in subject.batches(examples):
        mask = batch.inputs["mask"].float()
        counts[: mask.shape[1], : mask.shape[1]] += mask.T @ mask
    return counts


@torch.no_grad()
def measure(
    subject: Subject, gates: dict[str, DenseSpatial], trials: list[dict[str, Tensor]], examples: int
) -> tuple[float, int, list[tuple[float, float]]]:
    """Mean loss, examples seen, and for each trial's weights the mean rise of an example's loss with its error."""
    objective = subject.card.objective()
    total, count = 0.0, 0
    rises = torch.zeros(2, len(trials), dtype=torch.double)  # sums of rises and of their squares
    for batch in subject.batches(examples):
        outputs, entering = with_entries(subject, batch.inputs)
        plain = objective.losses(outputs, batch.targets).double()
        for number, trial in enumerate(trials):
            first = min(block_of(name) for name in trial)
            with lent(gates, trial):
                outputs = finished(subject, entering[first], first, batch.inputs.get("mask"))
            rise = objective.losses(outputs, batch.targets).double() - plain
            rises[:, number] += torch.stack([rise.sum(), rise.square().sum()])
        total, count = total + float(plain.sum()), count + len(plain)
    mean, square = rises / count
    error = ((square - mean.square()).clamp(min=0) / max(count - 1, 1)).sqrt()
    return total / count, count, list(zip(mean.tolist(), error.tolist(), strict=True))


def block_of(gate: str) -> int:
    """The number of the block that a gate, blocks.NUMBER.gate, belongs to."""
    return int(gate.split(".")[1])


def with_entries(subject: Subject, inputs: dict[str, Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Outputs, and what enters each block: a changed gate changes nothing before it."""
    network: Any = subject.network
    left: dict[int, Tensor] = {}
    entry, mask = network.embed_tokens(**inputs), inputs.get("mask")
    features = network.run_blocks(entry, mask, collect=left)
    return head_outputs(network, features, mask), [entry, *left.values()][:-1]


def finished(subject: Subject, x: Tensor, first: int, mask: Tensor | None) -> Tensor:
    """Outputs of the network from the entry of block `first` on."""
    network: Any = subject.network
    return head_outputs(network, network.run_blocks(x, mask, first=first), mask)


def head_outputs(network: Any, features: Tensor, mask: Tensor | None) -> Tensor:
    return network.forward_head(features) if mask is None else network.forward_head(features, mask)


@contextmanager
def lent(gates: dict[str, DenseSpatial], weights: dict[str, Tensor]) -> Iterator[None]:
    """Lend gates other weights."""
    own = {name: gates[name].weight.data for name in weights}
    for name, weight in weights.items():
        gates[name].weight.data = weight
    try:
        yield
    finally:
        for name, weight in own.items():
            gates[name].weight.data = weight


def changes_chart(projection: Projection) -> str:
    """A row a gate: the change with its standard error, projected and, as a ring, projected after shuffling."""
    names = [wrapped(each.layer, 0.4 * WIDTH, most=2) for each in projection.changes]
    step, left = 32.0, 14 + max(width(line) for lines in names for line in lines)
    floor = 8 + step * len(projection.changes)
    ends = [c.projected + s * c.projected_error for c in projection.changes for s in (-2, 2)]
    ends += [c.shuffled for c in projection.changes]
    scale = fitting([0.0, *ends], left, WIDTH - 20)
    parts = [f'<path class="grid" d="M{scale(tick):.1f} 8V{floor:.1f}"/>' for tick in scale.ticks()]
    parts += [text(scale(tick), floor + 16, short(tick)) for tick in scale.ticks()]
    for number, (each, lines) in enumerate(zip(projection.changes, names, strict=True)):
        y = 8 + step * (number + 0.5)
        low, high = (scale(each.projected + side * 2 * each.projected_error) for side in (-1, 1))
        parts.append(block(left - 8, y + 4 - 7 * (len(lines) - 1), lines, "end"))
        parts.append(f'<circle class="line c1" cx="{scale(each.shuffled):.1f}" cy="{y}" r="5"/>')
        parts.append(f'<path class="line c0" d="M{low:.1f} {y}H{high:.1f}"/>')
        parts.append(f'<circle class="dot c0" cx="{scale(each.projected):.1f}" cy="{y}" r="5"/>')
    parts.append(text((left + WIDTH - 20) / 2, floor + 34, "change of the loss", kind="title"))
    parts.append(text(8, floor + 54, "● projected, ± 2 standard errors", "start"))
    parts.append(text(8, floor + 71, "○ rows shuffled, then projected", "start"))
    return picture(WIDTH, floor + 80, "".join(parts), projection.sentence())
