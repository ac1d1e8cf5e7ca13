"""Pictures made of pixels: numbers to colours, PNG, and sheets of tiles whose labels follow the page's theme."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from weft.report.chart import picture, text
from weft.terminal import for_page

Pixels = NDArray[np.uint8]  # (height, width, 3)
Values = NDArray[Any]  # (height, width)
Tile = tuple[str, Pixels]  # label and picture

# Anchors between which colours are interpolated. Sequential: viridis, readable without colour vision; diverging: blue,
# white, red of ColorBrewer's RdBu, with zero in the middle.
SEQUENTIAL = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))
DIVERGING = ((33, 102, 172), (146, 197, 222), (247, 247, 247), (244, 165, 130), (178, 24, 43))


def shaded(values: Values, low: float | None = None, high: float | None = None) -> Pixels:
    """Numbers from low to high (by default their own range) as viridis."""
    low = float(values.min()) if low is None else low
    high = float(values.max()) if high is None else high
    return interpolated((values - low) / ((high - low) or 1.0), SEQUENTIAL)


def signed(values: Values, reach: float | None = None) -> Pixels:
    """Numbers around zero: blue below, white at zero, red above; `reach` is the largest size that has a colour."""
    reach = float(np.abs(values).max()) if reach is None else reach
    return interpolated(0.5 + values / (2 * reach or 1.0), DIVERGING)


def grey(values: Values) -> Pixels:
    """Numbers from their least to their largest as grey."""
    low, high = float(values.min()), float(values.max())
    scaled = np.clip((values - low) / ((high - low) or 1.0) * 255, 0, 255).round().astype(np.uint8)
    return np.repeat(scaled[..., None], 3, axis=2)


def interpolated(places: Values, anchors: Sequence[tuple[int, int, int]]) -> Pixels:
    """Places in [0, 1] as colours between the anchors."""
    steps = np.linspace(0, 1, len(anchors))
    channels = [np.interp(np.clip(places, 0, 1), steps, [anchor[c] for anchor in anchors]) for c in range(3)]
    return np.stack(channels, axis=-1).round().astype(np.uint8)


def png(pixels: NDArray[np.uint8]) -> bytes:
    """(height, width, 3), or 4 with transparency, as a PNG file."""
    file = BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, "PNG", optimize=True)
    return file.getvalue()


def embedded(pixels: NDArray[np.uint8], x: float, y: float, width: float, height: float, said: str = "") -> str:
    """Pixels as a part of an SVG, each a sharp square."""
    data = b64encode(png(pixels)).decode()
    about = f"<title>{for_page(said)}</title>" if said else ""
    return (
        f'<image x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" preserveAspectRatio="none" '
        f'style="image-rendering: pixelated" href="data:image/png;base64,{data}">{about}</image>'
    )


def sheet(tiles: Sequence[Tile], said: str, *, columns: int = 6, width: float = 560) -> str:
    """Tiles in rows, each under its label (labels may be empty), as one SVG of `width`."""
    columns = max(1, min(columns, len(tiles)))
    gap, head = 8.0, 18.0 if any(label for label, _ in tiles) else 0.0
    side = (width - gap * (columns + 1)) / columns
    parts, top = [], gap
    for start in range(0, len(tiles), columns):
        row = tiles[start : start + columns]
        tall = max(pixels.shape[0] / pixels.shape[1] for _, pixels in row) * side
        for column, (label, pixels) in enumerate(row):
            left = gap + column * (side + gap)
            if label:
                parts.append(text(left, top + 12, cut(label, side), "start"))
            parts.append(embedded(pixels, left, top + head, side, side * pixels.shape[0] / pixels.shape[1], label))
        top += head + tall + gap
    return picture(width, top, "".join(parts), said, "sheet")


def cut(label: str, side: float) -> str:
    """A label that is no longer than its tile is wide."""
    room = max(3, int(side / 6.6))
    return label if len(label) <= room else label[: room - 1] + "…"
