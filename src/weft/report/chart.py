"""The plane that charts are drawn on: scales, ticks, axes and escaping, as SVG text.

Colours are classes of the page's style sheet, so a chart follows its light or dark theme and prints in black on white.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from weft.terminal import for_page


@dataclass(frozen=True)
class Scale:
    """A map from values in [low, high] to pixels, linear or logarithmic."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        place = math.log10 if self.log else float
        share = (place(value) - place(self.low)) / (place(self.high) - place(self.low))
        return self.start + share * (self.stop - self.start)

    def ticks(self) -> list[float]:
        return log_ticks(self.low, self.high) if self.log else linear_ticks(self.low, self.high)


def fitting(values: Iterable[float], start: float, stop: float, log: bool = False) -> Scale:
    """A scale with a little room around the values; logarithmic only where all are above zero."""
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(known), max(known)
    if log and low > 0:
        room = (high / low) ** 0.08 if high > low else 2.0
        return Scale(low / room, high * room, start, stop, log=True)
    room = 0.06 * (high - low) or abs(high) * 0.1 or 1.0
    return Scale(low - room, high + room, start, stop)


def linear_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers in [low, high]."""
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 12) for number in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten in [low, high], with 2 and 5 of them where there is room."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1.0,) if math.log10(high / low) > 3 else (1.0, 2.0, 5.0)
    found = [factor * 10.0**power for power in powers for factor in factors if low <= factor * 10.0**power <= high]
    return found if len(found) > 1 else [low, high]


@dataclass(frozen=True)
class Plane:
    """Where a chart is drawn: outer size, margins and the two scales."""

    x: Scale
    y: Scale
    width: float = 460
    height: float = 300
    left: float = 54
    right: float = 14
    top: float = 12
    bottom: float = 40

    def axes(self, x_title: str, y_title: str, x_text: Callable[[float], str], y_text: Callable[[float], str]) -> str:
        """Grid lines, tick labels and titles."""
        floor, edge = self.height - self.bottom, self.width - self.right
        parts = []
        for value in self.y.ticks():
            y = self.y(value)
            parts.append(f'<path class="grid" d="M{self.left} {y:.1f}H{edge}"/>')
            parts.append(text(self.left - 6, y + 4, y_text(value), "end"))
        for value in self.x.ticks():
            x = self.x(value)
            parts.append(f'<path class="grid" d="M{x:.1f} {self.top}V{floor}"/>')
            parts.append(text(x, floor + 16, x_text(value)))
        parts.append(text((self.left + edge) / 2, self.height - 6, x_title, kind="title"))
        parts.append(text(13, (self.top + floor) / 2, y_title, kind="title", turned=-90))
        return "".join(parts)

    def svg(self, content: str, alternative: str) -> str:
        """The finished picture; `alternative` is what a screen reader says instead."""
        return picture(self.width, self.height, content, alternative)


def picture(width: float, height: float, content: str, alternative: str, kind: str = "chart") -> str:
    """An SVG element that scales with the page."""
    box = f'viewBox="0 0 {width:.0f} {height:.0f}"'
    return f'<svg class="{kind}" {box} role="img" aria-label="{for_page(alternative)}">{content}</svg>'


def text(x: float, y: float, words: str, anchor: str = "middle", kind: str = "tick", turned: int = 0) -> str:
    """Words at a place, turned about it by some degrees."""
    place = f'transform="translate({x:.1f} {y:.1f}) rotate({turned})"' if turned else f'x="{x:.1f}" y="{y:.1f}"'
    return f'<text class="{kind}" {place} text-anchor="{anchor}">{for_page(words)}</text>'


def plane(
    x: Iterable[float],
    y: Iterable[float],
    log: tuple[bool, bool] = (False, False),
    width: float = 460,
    height: float = 300,
    left: float = 58,
) -> Plane:
    """A plane on which all of these values have room."""
    frame = Plane(Scale(0, 1, 0, 1), Scale(0, 1, 0, 1), width, height, left)
    across = fitting(x, left, width - frame.right, log[0])
    down = fitting(y, height - frame.bottom, frame.top, log[1])
    return Plane(across, down, width, height, left)


def short(value: float) -> str:
    """A tick's number without needless digits."""
    if value and (abs(value) >= 1e5 or abs(value) < 1e-3):
        return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e").replace("-", "−")
    return f"{value:g}".replace("-", "−")
