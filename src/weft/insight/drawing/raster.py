"""Numbers to colours, pixels to PNG, and what a colour stands for."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from weft.report.words import text, width
from weft.terminal import for_page

Pixels = NDArray[np.uint8]  # (height, width, 3)
Values = NDArray[Any]  # (height, width)
Colours = Sequence[tuple[int, int, int]]

# Anchors between which colours are interpolated. Sequential: viridis, readable without colour vision; diverging: blue,
# white, red of ColorBrewer's RdBu, with zero in the middle; weights: as `highlight` lays them over grey.
SEQUENTIAL = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))
DIVERGING = ((33, 102, 172), (146, 197, 222), (247, 247, 247), (244, 165, 130), (178, 24, 43))
ABOVE, BELOW = (230, 80, 20), (0, 110, 200)  # of positive and negative weights
WEIGHTS = (BELOW, (200, 200, 200), ABOVE)
POSITIVE = ((200, 200, 200), ABOVE)


@dataclass(frozen=True)
class Key:
    """What colours stand for: words at the ends of a strip of them."""

    colours: Colours
    low: str
    high: str

    def svg(self, y: float, room: float) -> str:
        """A strip of 110 pixels between its words, for a picture of `room`; 20 pixels high."""
        strip = interpolated(np.linspace(0, 1, 64)[None], self.colours)
        left = min(10 + width(self.low) + 8, room - 120)
        return (
            text(10, y + 11, self.low, "start")
            + embedded(strip, left, y + 2, 110, 10)
            + text(left + 118, y + 11, self.high, "start")
        )

    def page(self) -> str:
        """The same for a page."""
        stops = ", ".join(f"rgb{colour}" for colour in self.colours)
        strip = f'<i style="background: linear-gradient(90deg, {stops})"></i>'
        return f'<p class="key"><span>{for_page(self.low)}</span>{strip}<span>{for_page(self.high)}</span></p>'


def shaded(values: Values, low: float | None = None, high: float | None = None) -> Pixels:
    """Numbers from low to high (by default their own range) as viridis."""
    low = float(values.min()) if low is None else low
    high = float(values.max()) if high is None else high
    return interpolated((values - low) / ((high - low) or 1.0), SEQUENTIAL)


def signed(values: Values, reach: float | None = None) -> Pixels:
    """Numbers around zero: blue below, white at zero, red above; `reach` is the largest size that has a colour."""
    reach = float(np.abs(values).max()) if reach is None else reach
    return interpolated(0.5 + values / (2 * reach or 1.0), DIVERGING)


def interpolated(places: Values, anchors: Colours) -> Pixels:
    """Places in [0, 1] as colours between the anchors."""
    steps = np.linspace(0, 1, len(anchors))
    channels = [np.interp(np.clip(places, 0, 1), steps, [anchor[c] for anchor in anchors]) for c in range(3)]
    return np.stack(channels, axis=-1).round().astype(np.uint8)


def png(pixels: NDArray[np.uint8]) -> bytes:
    """(height, width, 3), or 4 with transparency, as a PNG file."""
    file = BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, "PNG", optimize=True)
    return file.getvalue()


def address(pixels: NDArray[np.uint8]) -> str:
    """Pixels as an address that holds them."""
    return f"data:image/png;base64,{b64encode(png(pixels)).decode()}"


def embedded(pixels: NDArray[np.uint8], x: float, y: float, width: float, height: float, said: str = "") -> str:
    """Pixels as a part of an SVG, each a sharp square."""
    about = f"<title>{for_page(said)}</title>" if said else ""
    return (
        f'<image x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" preserveAspectRatio="none" '
        f'style="image-rendering: pixelated" href="{address(pixels)}">{about}</image>'
    )
