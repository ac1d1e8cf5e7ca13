"""The lens `gates`: what each layer's matrix over tokens looks like, how Toeplitz and how local it is.

All families are on one scale; every figure stands beside the same one for the matrix with its rows shuffled.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft.insight import toeplitz
from weft.insight.drawing.raster import DIVERGING, Key, signed
from weft.insight.drawing.tiles import Tile, sheet
from weft.insight.finding import Cell, Finding, Picture, Table, Unfit
from weft.insight.lenses.gates.chart import Marks, families_chart
from weft.insight.lenses.gates.toeplitz_projection import projected
from weft.insight.lenses.gates.token_matrices import Mixing, mixings
from weft.insight.options import GatesOptions
from weft.insight.subject import Subject, open_subject
from weft.insight.toeplitz import Structure, share_of_noise
from weft.networks.mixer import TokenMLP
from weft.report.columns import share
from weft.report.curves import curves

COLUMNS = [
    "run", "layer", "Toeplitz", "Toeplitz, shuffled", "locality", "locality, shuffled", "bandwidth",
    "bandwidth, shuffled", "symmetry", "symmetry, shuffled", "Toeplitz, 1-D", "Toeplitz, noise", "kind",
]  # fmt: skip
LEAST = 9  # tokens: of a 2×2 grid, noise is half Toeplitz
KEY = Key(DIVERGING, "below zero", "above, each tile on its own scale")
UNITS = 24  # token units of a Mixer that are drawn


@dataclass(frozen=True)
class MeasuredLayer:
    """A layer's figures, and those of the same matrices with shuffled rows."""

    mixing: Mixing
    found: Structure
    control: Structure

    def row(self, run: str) -> list[Cell]:
        pairs = [
            (getattr(self.found, name), getattr(self.control, name))
            for name in ("shift_invariance", "locality", "bandwidth", "symmetry")
        ]
        figures = [*(value for pair in pairs for value in pair), self.found.line, share_of_noise(self.mixing.grid)]
        return [run, self.mixing.layer, *(round(value, 4) for value in figures), self.mixing.kind]


def gates(subject: Subject, asked: GatesOptions) -> Finding:
    """Matrices, kernels, the chart of all families and, if asked for, what projecting costs."""
    every = {subject.name: measured(subject, asked.examples)}
    for path in asked.others:
        other = open_subject(path)
        every[distinct(other.name, every)] = measured(other, asked.examples)
    own = every[subject.name]
    pictures = {
        "families": Picture(chart(every), "How local and how shift-invariant each layer is"),
        **drawn(subject, own),
    }
    record: dict[str, Any] = {"runs": {name: [as_record(each) for each in layers] for name, layers in every.items()}}
    said = sentence(every)
    if asked.project:
        projection = projected(subject, asked.examples)
        pictures["projection"] = projection.picture()
        record["projection"] = projection.record()
        said += f" {projection.sentence()}"
    rows = [each.row(name) for name, layers in every.items() for each in layers]
    return Finding("gates", "Gates: how local, how shift-invariant", said, pictures, Table(COLUMNS, rows), record)


def distinct(name: str, taken: dict[str, Any]) -> str:
    """`name`, or the name with a number where it is taken."""
    number, found = 2, name
    while found in taken:
        found, number = f"{name} ({number})", number + 1
    return found


def measured(subject: Subject, examples: int) -> list[MeasuredLayer]:
    """The layers of a network whose matrices have enough tokens and are not constant."""
    result = []
    for mixing in mixings(subject, examples):
        if prod(mixing.grid) < LEAST:
            continue
        found = toeplitz.structure(*mixing.measurable())
        control = toeplitz.structure_of_shuffled(*mixing.measurable())
        if found is not None and control is not None:
            result.append(MeasuredLayer(mixing, found, control))
    if not result:
        raise Unfit(f"no layer of {subject.name} mixes as many as {LEAST} tokens unevenly; larger images show more")
    return result


def as_record(each: MeasuredLayer) -> dict[str, Any]:
    """A layer for the record."""
    return {
        "layer": each.mixing.layer, "kind": each.mixing.kind, "grid": list(each.mixing.grid),
        **asdict(each.found), "shuffled": asdict(each.control), "noise": share_of_noise(each.mixing.grid),
    }  # fmt: skip


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def sentence(every: dict[str, list[MeasuredLayer]]) -> str:
    """What the figures say of each run, in order of shift-invariance."""
    parts = []
    for name, layers in every.items():
        invariance = mean([each.found.shift_invariance for each in layers])
        control = mean([each.control.shift_invariance for each in layers])
        locality = mean([each.found.locality for each in layers])
        place = f"{locality:.2f}".replace("-", "−")
        parts.append((invariance, f"{name} {share(invariance)} (rows shuffled: {share(control)}; locality {place})"))
    listed = "; ".join(words for _, words in sorted(parts, reverse=True))
    return f"Share of the layers' energy in the nearest Toeplitz matrix, on average: {listed}."


def chart(every: dict[str, list[MeasuredLayer]]) -> str:
    """All runs on one plane, their shuffled controls beside them."""
    marks = [
        Marks(
            name,
            [(each.found.locality, each.found.shift_invariance, f"{name}, {each.mixing.layer}") for each in layers],
            [(each.control.locality, each.control.shift_invariance) for each in layers],
        )
        for name, layers in every.items()
    ]
    return families_chart(marks, sentence(every))


def drawn(subject: Subject, layers: list[MeasuredLayer]) -> dict[str, Picture]:
    """The subject's own matrices: as they are, and as the kernels that their nearest Toeplitz matrices amount to."""
    matrices: list[Tile] = [(each.mixing.layer, signed(centre(each.mixing))) for each in layers]
    said = f"The matrix over tokens of {len(layers)} layers, row: token that is computed, column: token that is read"
    caption = "Matrices over tokens, less their mean: row is the token that is computed, column the one that is read"
    pictures = {"matrices": sheet(matrices, said, caption, columns=4, key=KEY)}
    if len(layers[0].mixing.grid) == 2:
        kernels: list[Tile] = [(each.mixing.layer, signed(kernel(each.mixing))) for each in layers]
        said = "Mean weight by offset of rows and columns, offset zero in the middle"
        caption = "The same as kernels: mean weight by offset, no offset in the middle"
        pictures["kernels"] = sheet(kernels, said, caption, columns=6, key=KEY)
        pictures.update(token_units(subject))
    else:
        pictures["kernels"] = Picture(offset_curves(layers), "Mean weight by offset")
    return pictures


def typical(mixing: Mixing) -> Tensor:
    """One matrix to draw: a head's or kernel's with the most energy."""
    rest = toeplitz.centred(mixing.matrices)
    return rest[int(rest.square().sum((1, 2)).argmax())]


def centre(mixing: Mixing) -> Any:
    return typical(mixing).numpy()


def kernel(mixing: Mixing) -> Any:
    """Mean weight by offset: (2H−1, 2W−1), or (2S−1,)."""
    values = torch.zeros(toeplitz.count_offsets(mixing.grid), dtype=torch.double)
    numbers = toeplitz.offset_numbers(mixing.grid).flatten()
    values[numbers] = toeplitz.nearest_toeplitz(typical(mixing), mixing.grid).flatten()
    return values.reshape([2 * side - 1 for side in mixing.grid]).numpy()


def offset_curves(layers: list[MeasuredLayer], most: int = 8) -> str:
    """A line a layer over the offset, for texts; of many layers a few from first to last."""
    chosen = [layers[int(place)] for place in np.unique(np.linspace(0, len(layers) - 1, most).round())]
    series = {}
    for each in chosen:
        tokens = prod(each.mixing.grid)
        reach = min(tokens - 1, 16)
        weights = kernel(each.mixing)[tokens - 1 - reach : tokens + reach]
        series[each.mixing.layer] = (list(range(-reach, reach + 1)), (weights / np.abs(weights).max()).tolist())
    said = "Mean weight by offset of tokens, largest weight of each layer 1"
    return curves(series, ("offset: token read − token computed", "relative weight"), said, whole=True)


def token_units(subject: Subject) -> dict[str, Picture]:
    """A Mixer's first token MLP: what its strongest units read, drawn on the grid (Tolstikhin et al., figure 5)."""
    found = [layer for layer in subject.network.modules() if isinstance(layer, TokenMLP)]
    layout: Any = getattr(subject.network, "layout", None)
    if not found or layout is None:
        return {}
    weight = found[0].fc1.weight.detach()[:, layout.extra :]
    strongest = weight.norm(dim=1).argsort(descending=True)[:UNITS]
    tiles: list[Tile] = [("", signed(weight[unit].reshape(layout.grid).numpy())) for unit in strongest]
    said = f"What the {len(tiles)} strongest of {len(weight)} token units of the first block read"
    return {"units": sheet(tiles, said, said, columns=8, key=KEY)}
