"""What a layer computes for one example: feature maps of an image, or values by word of a text."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from weft.insight.drawing.raster import Tile, embedded, shaded, sheet, signed
from weft.networks.base.backbone import ImageTokens
from weft.networks.base.network import Network
from weft.nn.spatial import Layout
from weft.report.chart import picture, text


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


def maps_sheet(maps: Tensor, count: int, said: str) -> str:
    """The first maps as tiles, each from its least (dark) to its largest value (bright)."""
    tiles: list[Tile] = [("", shaded(one.double().numpy())) for one in maps[:count]]
    return sheet(tiles, said, columns=8 if len(tiles) > 1 else 2)


def by_word(output: Tensor, words: Sequence[str], said: str, channels: int = 96) -> str:
    """A layer's values for one text, a row a word: blue below zero, red above."""
    value: NDArray[np.float64] = output[0].double().numpy()
    if value.ndim == 1:
        value = value[None]
    if value.shape[0] != len(words) and value.shape[-1] >= len(words):  # a convolution: channels first, windows last
        value = value.T[: len(words)]
    value = value[: len(words), :channels]
    left, step = 110.0, 16.0
    labels = words if len(value) == len(words) else [str(row) for row in range(len(value))]
    parts = [
        text(left - 6, 8 + (row + 0.75) * step, label[:14], "end") for row, label in enumerate(labels[: len(value)])
    ]
    parts.append(embedded(signed(value), left, 8, 440, step * len(value)))
    return picture(560, 16 + step * len(value), "".join(parts), said, "sheet")
