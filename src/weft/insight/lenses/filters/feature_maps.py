"""What a layer computes for one example: feature maps of an image, or values by word of a text."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from weft.insight.drawing.raster import DIVERGING, SEQUENTIAL, Key, embedded, shaded, signed
from weft.insight.drawing.tiles import Tile, sheet
from weft.insight.finding import Picture
from weft.networks.base.backbone import ImageTokens
from weft.networks.base.network import Network
from weft.nn.blocks import Layout
from weft.report.chart import brief, picture
from weft.report.words import text, width

ROWS, FOLDS = 24, 4  # words below each other, and columns of them side by side
ROOM = 560.0  # pixels that a map of words takes at least, as the page has them
CHANNELS, CELL, STEP, GAP = 96, 5.0, 16.0, 18.0  # channels over all columns; pixels of a value, a word and a gap


def default_layer(network: Network) -> str:
    """The first block of a token network, the first convolution of another, else the first layer with weights."""
    names = [name for name, _ in network.named_modules()]
    if "blocks.0" in names:
        return "blocks.0"
    for kinds in ((nn.Conv2d, nn.Conv1d), (nn.LSTM, nn.Linear)):
        found = [name for name, module in network.named_modules() if isinstance(module, kinds)]
        if found:
            return found[0]
    return names[1]


def maps_of(output: Tensor, layout: Layout | None) -> Tensor:
    """A layer's output for one image as maps (maps, height, width).

    Tokens are put back on their grid, without the class token; anything else becomes one map of its own shape, and a
    vector is folded into rows.
    """
    value = output[0]
    if value.ndim == 3:
        return value
    if value.ndim == 2 and layout is not None and value.shape[0] == layout.tokens:
        return value[layout.extra :].T.unflatten(1, layout.grid)
    if value.ndim == 1:
        wide = math.ceil(len(value) ** 0.5)
        folded = value.new_zeros(wide * -(-len(value) // wide))
        folded[: len(value)] = value
        return folded.reshape(1, -1, wide)
    return value[None]


def layout_of(network: Network) -> Layout | None:
    return network.layout if isinstance(network, ImageTokens) else None


def maps_sheet(maps: Tensor, count: int, said: str) -> Picture:
    """The first maps as tiles, each from its least (dark) to its largest value (bright)."""
    tiles: list[Tile] = [("", shaded(one.double().numpy())) for one in maps[:count]]
    key = Key(SEQUENTIAL, "least", "largest, each map on its own scale")
    return sheet(tiles, said, said, columns=8 if len(tiles) > 1 else 2, key=key)


def by_word(output: Tensor, words: Sequence[str], said: str) -> Picture:
    """A layer's values for one text, a row a word: blue below zero, red above.

    A long text is folded: its words go on in the next column, so that no map is taller than `ROWS` words.
    """
    value: NDArray[np.float64] = output[0].double().numpy()
    if value.ndim == 1:
        value = value[None]
    if value.shape[0] < len(words) <= value.shape[-1]:  # a convolution: channels first, windows last
        value = value.T
    shown = min(len(value), len(words), ROWS * FOLDS) if len(value) >= len(words) else min(len(value), ROWS * FOLDS)
    labels = list(words[:shown]) if len(value) >= len(words) else [str(row) for row in range(shown)]
    folds = -(-shown // ROWS)
    value = value[:shown, : CHANNELS // folds]
    rows, reach = -(-shown // folds), float(np.abs(value).max())
    left = 16 + max(width(label) for label in labels)
    across = max(max(1, value.shape[1]) * CELL, ROOM / folds - left - GAP)  # few channels are drawn wider
    parts = []
    for fold in range(folds):
        start, x = fold * rows, fold * (left + across + GAP)
        part = value[start : start + rows]
        for row, label in enumerate(labels[start : start + rows]):
            parts.append(text(x + left - 6, 8 + (row + 0.75) * STEP, label, "end"))
        parts.append(embedded(signed(part, reach), x + left, 8, across, STEP * len(part)))
    foot = 14 + STEP * rows
    wide = max(folds * (left + across + GAP), 300.0)
    parts.append(Key(DIVERGING, brief(-reach), brief(reach)).svg(foot, wide))
    left_out = f"; the first {shown} of {len(words)} words" if shown < min(len(words), len(output[0])) else ""
    caption = f"{said}, the first {value.shape[1]} channels across{left_out}"
    return Picture(picture(wide, foot + 22, "".join(parts), said, "sheet"), caption)
