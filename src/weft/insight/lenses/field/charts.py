"""Pictures of receptive fields: sides through depth, maps over the image with theory framed, profiles over words."""

from __future__ import annotations

import numpy as np

from weft.insight.drawing.raster import cut, embedded, shaded
from weft.insight.lenses.field.effective import MeasuredField
from weft.report.chart import picture, text
from weft.report.curves import curves

COLUMNS, WIDTH, GAP, HEAD = 4, 560.0, 10.0, 20.0


def growth_chart(layers: dict[str, MeasuredField], unit: str) -> str:
    """Theoretical side, at most that of the input, and effective side, layer by layer."""
    extent = max(max(one.energy.shape) for one in layers.values())
    extent = (extent + 1) // 2 if unit == "tokens" else extent
    numbers = list(range(1, len(layers) + 1))
    theory = [float(min(extent, one.place.side or extent)) for one in layers.values()]
    effect = [one.effective_side() for one in layers.values()]
    said = f"Side of the receptive field by layer, in {unit}, in theory (within the input) and as measured"
    series = {"in theory, within the input": (numbers, theory), "measured, 90 % of the energy": (numbers, effect)}
    reach = (0.0, 1.08 * max(*theory, *effect))
    return curves(series, ("layer measured, from the input", unit), said, reach=reach, dots=True)


def maps_of_images(fields: dict[str, MeasuredField]) -> str:
    """One map a field: how strongly each pixel counts (bright), and a frame around the theoretical field."""
    columns = max(2, min(COLUMNS, len(fields)))
    side = (WIDTH - GAP * (columns + 1)) / columns
    parts = []
    for number, (name, one) in enumerate(fields.items()):
        row, column = divmod(number, columns)
        left, top = GAP + column * (side + GAP), GAP + row * (side + HEAD + GAP)
        said = f"{name}: effective side {one.effective_side():.0f}"
        parts.append(text(left, top + 12, cut(name, side), "start"))
        parts.append(embedded(shaded(np.sqrt(one.energy), low=0.0), left, top + HEAD, side, side, said))
        parts.append(frame(one, left, top + HEAD, side))
    rows = -(-len(fields) // columns)
    said = "Measured receptive fields: " + ", ".join(f"{n} {one.effective_side():.0f}" for n, one in fields.items())
    return picture(WIDTH, GAP + rows * (side + HEAD + GAP), "".join(parts), said, "sheet")


def frame(one: MeasuredField, left: float, top: float, side: float) -> str:
    """The theoretical field's border, where it lies within the image."""
    if one.place.side is None:
        return ""
    scale = side / one.energy.shape[0]
    edges = []
    for middle, size in zip(one.middle, one.energy.shape, strict=True):
        low, high = middle + 0.5 - one.place.side / 2, middle + 0.5 + one.place.side / 2
        edges.append((max(0.0, low) * scale, min(float(size), high) * scale))
    (y, bottom), (x, right) = edges
    box = f'x="{left + x:.1f}" y="{top + y:.1f}" width="{right - x:.1f}" height="{bottom - y:.1f}"'
    return f'<rect class="frame" {box}/>'


def profiles_of_texts(fields: dict[str, MeasuredField]) -> str:
    """Share of the energy by distance in tokens from the middle, a line a field."""
    series = {}
    for name, one in fields.items():
        middle = len(one.energy) // 2
        reach = min(middle, 24)
        share = one.energy / (one.energy.sum() or 1.0)
        series[name] = (list(range(-reach, reach + 1)), share[middle - reach : middle + reach + 1].tolist())
    said = "Share of the field's energy by distance in tokens from the middle, for " + ", ".join(fields)
    return curves(series, ("tokens from the middle", "share of the energy"), said)
