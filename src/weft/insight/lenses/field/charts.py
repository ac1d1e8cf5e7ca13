"""Pictures of receptive fields: sides through depth, maps over the image with theory framed, profiles over words."""

from __future__ import annotations

import numpy as np

from weft.insight.drawing.raster import SEQUENTIAL, Key, Pixels, shaded
from weft.insight.drawing.tiles import sheet
from weft.insight.finding import Picture
from weft.insight.lenses.field.effective import MeasuredField
from weft.report.curves import curves

LEAST = 192  # pixels of a map's side, so that lines drawn on it are thin
FRAME, CROSS = (255, 255, 255), (255, 90, 60)  # colours of the theoretical field's border and of its middle
KEY = Key(SEQUENTIAL, "no effect", "strongest, each map on its own scale")


def growth_chart(layers: dict[str, MeasuredField], unit: str) -> str:
    """Theoretical side, at most that of the input, and effective side, layer by layer."""
    extent = max(max(one.energy.shape) for one in layers.values())
    extent = (extent + 1) // 2 if unit == "tokens" else extent
    numbers = list(range(1, len(layers) + 1))
    theory = [float(min(extent, one.place.side or extent)) for one in layers.values()]
    effect = [min(float(extent), one.effective_side()) for one in layers.values()]
    said = f"Side of the receptive field by layer, in {unit}, in theory (within the input) and as measured"
    series = {"in theory, within the input": (numbers, theory), "measured, 90 % of the energy": (numbers, effect)}
    reach = (0.0, 1.08 * max(*theory, *effect))
    return curves(series, ("layer measured, from the input", unit), said, reach=reach, dots=True, whole=True)


def maps_of_images(fields: dict[str, MeasuredField], caption: str) -> Picture:
    """One map a field: how strongly each pixel counts (bright), the theoretical field framed, and its middle."""
    tiles = [(f"{name}: {one.effective_side():.0f} pixels", drawn(one)) for name, one in fields.items()]
    said = "Measured receptive fields: " + ", ".join(f"{n} {one.effective_side():.0f}" for n, one in fields.items())
    where = "the value whose field lies nearest to the middle of the image; frame: field in theory, cross: its middle"
    return sheet(tiles, said, f"{caption}: {where}", columns=4, key=KEY)


def drawn(one: MeasuredField) -> Pixels:
    """A map with the theoretical field's border, where it lies within the image, and a cross in its middle."""
    factor = -(-LEAST // min(one.energy.shape))
    pixels = shaded(np.sqrt(one.energy), low=0.0).repeat(factor, axis=0).repeat(factor, axis=1)
    if one.place.side is not None:
        (top, bottom), (left, right) = (
            (round(factor * max(0.0, middle + 0.5 - one.place.side / 2)),
             round(factor * min(float(size), middle + 0.5 + one.place.side / 2)) - 1)
            for middle, size in zip(one.middle, one.energy.shape, strict=True)
        )  # fmt: skip
        for line in (slice(top, top + 2), slice(bottom - 1, bottom + 1)):
            pixels[line, left : right + 1] = FRAME
        for line in (slice(left, left + 2), slice(right - 1, right + 1)):
            pixels[top : bottom + 1, line] = FRAME
    row, column = (round(factor * (middle + 0.5)) for middle in one.middle)
    reach = LEAST // 24
    pixels[max(0, row - 1) : row + 1, max(0, column - reach) : column + reach] = CROSS
    pixels[max(0, row - reach) : row + reach, max(0, column - 1) : column + 1] = CROSS
    return pixels


def profiles_of_texts(fields: dict[str, MeasuredField], caption: str) -> Picture:
    """Share of the energy by distance in tokens from the word that is measured, a line a field."""
    series = {}
    for name, one in fields.items():
        middle = len(one.energy) // 2
        reach = min(middle, 24)
        share = one.energy / (one.energy.sum() or 1.0)
        series[name] = (list(range(-reach, reach + 1)), share[middle - reach : middle + reach + 1].tolist())
    said = "Share of the field's energy by distance in tokens from the middle, for " + ", ".join(fields)
    titles = "tokens from the middle of the text", "share of the energy"
    return Picture(curves(series, titles, said, whole=True), f"{caption}: the token in the middle of each text")
