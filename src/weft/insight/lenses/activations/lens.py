"""The lens `activations`: every function beside its derivative; on data, the units of each layer that are flat."""

from __future__ import annotations

import torch
from torch import Tensor

from weft.insight.finding import Cell, Finding, Picture, Table
from weft.insight.lenses.activations.dead_units import Units, watch_units
from weft.insight.options import ActivationsOptions
from weft.insight.subject import Subject
from weft.nn.activations import ACTIVATIONS
from weft.report.chart import Scale, picture
from weft.report.columns import share
from weft.report.curves import bars, legend_of
from weft.report.words import text

TITLE = "Activations"
TEXTBOOK = frozenset({"functions"})
REACH = 4.0  # functions are drawn for x from −4 to 4
PLACES = (-2.0, 0.0, 2.0)  # where the table gives their values
MANY = 40  # layers that a chart shows; a table has all


def activations(subject: Subject, asked: ActivationsOptions) -> Finding:
    """The functions; and, where there is data, how many units of each layer are dead or saturated on it."""
    pictures = {"functions": functions_chart()}
    record = {"functions": {name: values_of(name) for name in ACTIVATIONS}}
    units = watch_units(subject, asked.examples) if subject.opener is not None else {}
    if not units:
        table, said = functions_table(), why_without(subject)
        return Finding("activations", TITLE, said, pictures, table, record, {"functions": table}, TEXTBOOK)
    pictures = {"units": Picture(units_chart(units), "Units that pass hardly any gradient, by layer"), **pictures}
    rows: list[list[Cell]] = [
        [name, layer.act, len(layer.flat), layer.dead, layer.saturated, layer.flatness] for name, layer in units.items()
    ]
    columns = ["layer", "activation", "units", "dead", "saturated", "flat inputs"]
    record["layers"] = [dict(zip(columns, row, strict=True)) for row in rows]  # type: ignore[assignment]
    table, more = Table(columns, rows), {"functions": functions_table()}
    return Finding("activations", TITLE, verdict(units), pictures, table, record, more, TEXTBOOK)


def why_without(subject: Subject) -> str:
    """What the functions alone say."""
    if subject.opener is not None:
        return f"{subject.name} has no activation that can be watched: torch's kernels compute them inside."
    largest = values_of("logistic")["largest slope"]
    return (
        f"The logistic function's slope is {largest:.2f} at most, so that ten layers of it shrink a gradient "
        f"{largest**-10 / 1e6:.0f} million times; tanh, ReLU and ELU reach 1. With --source, units are watched too."
    )


def verdict(units: dict[str, Units]) -> str:
    """One sentence over all layers."""
    total = sum(len(layer.flat) for layer in units.values())
    dead = sum(layer.dead * len(layer.flat) for layer in units.values()) / total
    saturated = sum(layer.saturated * len(layer.flat) for layer in units.values()) / total
    worst, layer = max(units.items(), key=lambda item: item[1].dead + item[1].saturated)
    most = f"; most in {worst}, {share(layer.dead + layer.saturated)}" if layer.dead + layer.saturated else ""
    count = f"{total:,} units in {len(units)} layers"
    return f"Of {count}, {share(dead)} are dead and {share(saturated)} saturated{most}."


def units_chart(units: dict[str, Units]) -> str:
    """A bar a layer; of many layers, those with most."""
    rows = [(name, (layer.dead, layer.saturated)) for name, layer in units.items()]
    if len(rows) > MANY:
        least = sorted((sum(values) for _, values in rows), reverse=True)[MANY - 1]
        rows = [row for row in rows if sum(row[1]) >= least][:MANY]
    return bars(rows, ("dead", "saturated"), f"Dead and saturated units by layer. {verdict(units)}")


def values_of(name: str) -> dict[str, float]:
    """A function and its derivative at a few places, and its largest slope."""
    known, x = ACTIVATIONS[name], torch.tensor(PLACES, dtype=torch.double)
    values = dict(zip((f"g({place:g})" for place in PLACES), known.function(x).tolist(), strict=True))
    slopes = dict(zip((f"g′({place:g})" for place in PLACES), known.derivative(x).tolist(), strict=True))
    grid = torch.linspace(-8, 8, 4001, dtype=torch.double)
    return {**values, **slopes, "largest slope": float(known.derivative(grid).max())}


def functions_table() -> Table:
    rows: list[list[Cell]] = [[name, *values_of(name).values()] for name in ACTIVATIONS]
    return Table(["activation", *values_of("relu")], rows)


def functions_chart() -> Picture:
    """Small panels, three in a row; on a page as many as it has room for."""
    wide, high, columns = 138.0, 130.0, 3
    x = torch.linspace(-REACH, REACH, 161, dtype=torch.double)
    panels = {
        name: function_panel(name, x, known.function(x), known.derivative(x), wide - 14, high - 14)
        for name, known in ACTIVATIONS.items()
    }
    parts = []
    for number, panel in enumerate(panels.values()):
        row, column = divmod(number, columns)
        parts.append(f'<g transform="translate({7 + column * wide} {7 + row * high})">{panel}</g>')
    rows = -(-len(panels) // columns)
    legend, tall = legend_of(("g(x)", "g′(x)"), columns * wide)
    parts.append(f'<g transform="translate(0 {rows * high + 6})">{legend}</g>')
    said = f"{len(panels)} activations with their derivatives for x from −4 to 4: {', '.join(panels)}"
    single = [
        picture(wide, high, f'<g transform="translate(7 7)">{panel}</g>', f"{name} and its derivative")
        for name, panel in panels.items()
    ]
    items = "".join(f"<li>{panel}</li>" for panel in single)
    page = f'<ul class="tiles" style="--tile: 9.5rem; --together: 1">{items}</ul>'
    whole = picture(columns * wide, rows * high + tall, "".join(parts), said)
    return Picture(whole, "Each activation g (line) and its derivative g′ (dashes), from −4 to 4", page=page)


def function_panel(name: str, x: Tensor, y: Tensor, slope: Tensor, width: float, height: float) -> str:
    """One function: axes through zero, the function and its derivative, all on one scale from −2 to 3."""
    across, up = Scale(-REACH, REACH, 0, width), Scale(-2, 3, height, 18)
    parts = [text(0, 12, name, "start", "label")]
    parts.append(f'<path class="grid" d="M0 {up(0):.1f}H{width}M{across(0):.1f} 18V{height}"/>')
    parts += [text(width, up(0) + 13, "4", "end"), text(across(0) - 4, up(1) + 4, "1", "end")]
    parts.append(f'<path class="grid" d="M{across(0) - 3:.1f} {up(1):.1f}h6"/>')
    for values, kind in ((y, "c0"), (slope, 'c1" stroke-dasharray="7 3')):
        inside = [(a, b) for a, b in zip(x.tolist(), values.tolist(), strict=True) if -2 <= b <= 3]
        points = " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in inside)
        parts.append(f'<polyline class="line {kind}" points="{points}"/>')
    return "".join(parts)
