"""The plane that charts are drawn on: scales, ticks, axes and escaping, as SVG text.

Colours are classes of the page's style sheet, so a chart follows its light or dark theme and prints in black on white.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from weft.report.words import text, width
from weft.terminal import for_page

FEW = 12  # whole numbers along an axis that all have a tick
STEP, WIDEST = 20, 100  # pixels from one class of widths to the next, and how many there are
WIDTH, HEIGHT = 420.0, 290.0  # of a chart: on a phone its letters are hardly smaller, on a wide page two stand abreast


@dataclass(frozen=True)
class Scale:
    """A map from values in [low, high] to pixels, linear or logarithmic."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False
    whole: bool = False  # whether values are whole numbers, such as layers: then ticks are

    def __call__(self, value: float) -> float:
        place = math.log10 if self.log else float
        share = (place(value) - place(self.low)) / (place(self.high) - place(self.low))
        return self.start + share * (self.stop - self.start)

    def ticks(self) -> list[float]:
        if self.whole and not self.log and self.high - self.low <= FEW:
            return [float(value) for value in range(math.ceil(self.low), math.floor(self.high) + 1)]
        return log_ticks(self.low, self.high) if self.log else linear_ticks(self.low, self.high)


def fitting(values: Iterable[float], start: float, stop: float, log: bool = False, whole: bool = False) -> Scale:
    """A scale with a little room around the values; logarithmic only where all are above zero."""
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(known), max(known)
    if high - low <= 1e-9 * abs(high):  # the same but for rounding
        low = high
    if log and low > 0:
        room = (high / low) ** 0.08 if high > low else 2.0
        return Scale(low / room, high * room, start, stop, True, whole)
    room = 0.06 * (high - low) or abs(high) * 0.1 or 1.0
    return Scale(low - room, high + room, start, stop, whole=whole)


def linear_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers in [low, high]."""
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 12) for number in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten in [low, high], with 2 and 5 of them where there is room; over a narrow span, round numbers."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1.0,) if math.log10(high / low) > 3 else (1.0, 2.0, 5.0)
    found = [factor * 10.0**power for power in powers for factor in factors if low <= factor * 10.0**power <= high]
    return found if len(found) > 2 else linear_ticks(low, high, 8)


@dataclass(frozen=True)
class Plane:
    """Where a chart is drawn: outer size, margins and the two scales."""

    x: Scale
    y: Scale
    width: float = WIDTH
    height: float = HEIGHT
    left: float = 54
    right: float = 14
    top: float = 30
    bottom: float = 40

    def axes(self, x_title: str, y_title: str, x_text: Callable[[float], str], y_text: Callable[[float], str]) -> str:
        """Grid lines, tick labels and titles: that of the upward axis stands above it, where it can be read."""
        floor, edge = self.height - self.bottom, self.width - self.right
        parts = []
        for value in self.y.ticks():
            y = self.y(value)
            parts.append(f'<path class="grid" d="M{self.left:.1f} {y:.1f}H{edge:.1f}"/>')
            parts.append(text(self.left - 6, y + 4, y_text(value), "end"))
        used = 0.0
        for value in self.x.ticks():
            x, words = self.x(value), x_text(value)
            parts.append(f'<path class="grid" d="M{x:.1f} {self.top:.1f}V{floor:.1f}"/>')
            half = width(words) / 2
            place = max(half + 1, min(x, self.width - half - 1))
            if place - half > used:  # else it would stand in the last one
                parts.append(text(place, floor + 16, words))
                used = place + half + 6
        parts.append(text((self.left + edge) / 2, self.height - 6, x_title, kind="title"))
        parts.append(text(4, 14, y_title, "start", "title"))
        return "".join(parts)

    def svg(self, content: str, alternative: str) -> str:
        """The finished picture; `alternative` is what a screen reader says instead."""
        return picture(self.width, self.height, content, alternative)


def picture(wide: float, high: float, content: str, alternative: str, kind: str = "chart") -> str:
    """An SVG element that scales with the page; a class such as w21 tells the style sheet how wide its letters want it,
    as pages of a server may have no styles but those of their sheet."""
    named = f'class="{kind} w{min(WIDEST, math.ceil(wide / STEP))}" viewBox="0 0 {wide:.0f} {high:.0f}"'
    return f'<svg {named} role="img" aria-label="{for_page(alternative)}">{content}</svg>'


def width_classes() -> str:
    """The part of the style sheet that has these classes."""
    return "".join(f".w{number}{{--wide:{STEP * number}px}}" for number in range(1, WIDEST + 1)) + "\n"


def room_for(ticks: Iterable[str]) -> float:
    """The margin left of a plane with these words at its ticks."""
    return 14 + max([width(words) for words in ticks], default=30.0)


def plane(
    x: Iterable[float],
    y: Iterable[float],
    log: tuple[bool, bool] = (False, False),
    size: tuple[float, float] = (WIDTH, HEIGHT),
    y_text: Callable[[float], str] | None = None,
    whole: bool = False,
) -> Plane:
    """A plane on which all of these values have room, its margin as wide as its ticks are; `whole` is of x."""
    wide, high = size
    frame = Plane(Scale(0, 1, 0, 1), Scale(0, 1, 0, 1), wide, high)
    down = fitting(y, high - frame.bottom, frame.top, log[1])
    left = room_for(map(y_text or short, down.ticks()))
    return Plane(fitting(x, left, wide - frame.right, log[0], whole), down, wide, high, left)


def short(value: float) -> str:
    """A tick's number without needless digits."""
    if value and (abs(value) >= 1e5 or abs(value) < 1e-3):
        return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e").replace("-", "−")
    return f"{value:g}".replace("-", "−")


def brief(value: float) -> str:
    """A tick in three digits at most."""
    return short(float(f"{value:.3g}"))
