"""The effective receptive field, measured: how strongly each input pixel, or word, moves a value near the middle.

For a layer's output y at the position whose field lies nearest to the middle of the input, the energy at input position
p is the sum over output channels and input channels of (∂y/∂x_p)², averaged over examples. Random signs over the output
channels give it in one backward pass: the square of a signed sum has the sum of squares as its mean.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from weft.data.batch.loader import Batch
from weft.insight.layers import watching
from weft.insight.lenses.field.theoretical import FEATURES, Place
from weft.networks.base.network import Network
from weft.networks.config import TextConvConfig
from weft.nn.blocks import Layout

MOST = 0.9  # share of the energy that the effective side holds
Energy = NDArray[np.float64]  # (height, width), or (offsets,) around the middle token


@dataclass
class MeasuredField:
    """The field of one layer: `energy` is summed over the examples seen; `middle` is where its centre should be."""

    place: Place
    energy: Energy = field(default_factory=lambda: np.zeros(0))
    middle: tuple[float, ...] = ()

    def add(self, energy: Energy, middle: tuple[float, ...]) -> None:
        self.energy = energy if not self.energy.size else self.energy + energy
        self.middle = middle

    def distances(self) -> Energy:
        """Distance of each position from the middle, along the axis on which it is larger."""
        axes = [np.abs(np.arange(size) - centre) for size, centre in zip(self.energy.shape, self.middle, strict=True)]
        return np.max(np.stack(np.meshgrid(*axes, indexing="ij")), axis=0)

    def inside(self) -> float:
        """Share of the energy within the theoretical field."""
        total = float(self.energy.sum())
        if self.place.side is None or not total:
            return 1.0
        outside = self.distances() > (self.place.side - 1) / 2 + 1e-9
        return 1 - float(self.energy[outside].sum()) / total

    def effective_side(self, most: float = MOST) -> float:
        """Side of the smallest square around the middle (or span of tokens) that holds `most` of the energy."""
        away, total = self.distances(), float(self.energy.sum())
        if not total:
            return 0.0
        order = np.argsort(away, axis=None)
        sums = np.cumsum(self.energy.ravel()[order])
        reached = int(np.searchsorted(sums, most * total * (1 - 1e-12)))
        return 2 * float(away.ravel()[order][min(reached, away.size - 1)]) + 1


def measure(network: Network, places: list[Place], batches: Iterable[Batch], seed: int = 0) -> list[MeasuredField]:
    """The field of each place over all examples: one forward pass a batch, and a backward pass for each place."""
    generator = torch.Generator().manual_seed(seed)
    found = [MeasuredField(place) for place in places]
    watched = {place.module: network.get_submodule(place.module) for place in places if place.module != FEATURES}
    text = network.config.input == "text"
    for batch in batches:
        outputs: dict[str, Tensor] = {}
        inputs = dict(batch.inputs)
        if not text:
            inputs["x"] = source = inputs["x"].clone().requires_grad_(True)
        with torch.enable_grad(), watching({**watched, **words_of(network, text)}, outputs.__setitem__):
            if any(place.module == FEATURES for place in places):
                outputs[FEATURES] = network.forward_features(**inputs)
            else:
                network(**inputs)
        if text:
            source = outputs["embed"]
        for one in found:
            probe(one, outputs[one.place.module], source, batch, network, generator)
    return found


def words_of(network: Network, text: bool) -> dict[str, nn.Module]:
    """The word vectors, by which a text network is differentiated."""
    return {"embed": network.get_submodule("embed")} if text else {}


def probe(
    one: MeasuredField, output: Tensor, source: Tensor, batch: Batch, network: Any, generator: torch.Generator
) -> None:
    """Add the energy of one batch at one layer."""
    if source.ndim == 4:
        grid = as_grid(output, getattr(network, "layout", None))
        position = [central(one.place, *sizes) for sizes in zip(grid.shape[2:], source.shape[2:], strict=True)]
        chosen = grid[:, :, position[0], position[1]]
        gradient = backward(chosen, source, generator)
        middle = one.place.middle(position[0]), one.place.middle(position[1])
        one.add(gradient.square().sum((0, 1)).double().numpy(), middle)
        return
    centres = batch.inputs["mask"].sum(1) // 2
    rows = output.transpose(1, 2) if isinstance(network.config, TextConvConfig) else output
    positions = (centres - one.place.start).long()  # rounded down where the window is even
    gradient = backward(rows[torch.arange(len(rows)), positions], source, generator)
    energy = by_offset(gradient.square().sum(2), centres, network.config.max_length)
    one.add(energy, (network.config.max_length - 1 + float(one.place.middle(int(positions[0])) - centres[0]),))


def central(place: Place, count: int, size: int) -> int:
    """Which of `count` values along a side has the middle of its field nearest to that of an input of `size`.

    Strides with padding place fields towards the upper left: of three values with fields 32 pixels apart over 96, the
    second is at a third.
    """
    return min(range(count), key=lambda position: abs(place.middle(position) - (size - 1) / 2))


def as_grid(output: Tensor, layout: Layout | None) -> Tensor:
    """A layer's output as (batch, channels, height, width): tokens go back to their grid, a class token is left out."""
    if output.ndim == 4 or layout is None:
        return output
    return output[:, -prod(layout.grid) :].transpose(1, 2).unflatten(2, layout.grid)


def backward(chosen: Tensor, source: Tensor, generator: torch.Generator) -> Tensor:
    """∂(Σ ± chosen)/∂source, with a random sign for each value (batch, channels)."""
    signs = torch.randint(0, 2, chosen.shape, generator=generator).to(chosen.dtype) * 2 - 1
    (gradient,) = torch.autograd.grad((chosen * signs).sum(), source, retain_graph=True, allow_unused=True)
    return torch.zeros_like(source) if gradient is None else gradient.detach()


def by_offset(energy: Tensor, centres: Tensor, longest: int) -> Energy:
    """Energies (batch, tokens) summed by offset from each text's middle: (2·longest − 1,), offset 0 in the middle."""
    summed = torch.zeros(2 * longest - 1, dtype=torch.double)
    offsets = torch.arange(energy.shape[1])[None] - centres[:, None] + longest - 1
    summed.index_add_(0, offsets.flatten(), energy.double().flatten())
    return summed.numpy()
