"""Line charts and bars that carry their own legend, for pictures that stand alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from weft.report.chart import Plane, Scale, fitting, picture, short, text
from weft.report.charts import colour
from weft.report.columns import share
from weft.terminal import for_page

Points = tuple[Sequence[float], Sequence[float]]  # x and y, of one length
LETTER = 6.9  # average width of a letter of 12 pixels
DASHES = ("", ' stroke-dasharray="7 3"', ' stroke-dasharray="2 3"')


def brief(value: float) -> str:
    """A tick in three digits at most: a narrow logarithmic axis has its ends as ticks, which are not round."""
    return short(float(f"{value:.3g}"))


def curves(
    series: Mapping[str, Points],
    titles: tuple[str, str],
    said: str,
    *,
    log: tuple[bool, bool] = (False, False),
    reach: tuple[float, float] | None = None,
    dots: bool = False,
    write: tuple[Callable[[float], str], Callable[[float], str]] = (short, brief),
    width: float = 460,
    height: float = 290,
) -> str:
    """A line a series with a legend below; `reach` fixes the ends of the y axis."""
    names = list(series)
    legend, below = legend_of(names, width)
    left = 62.0
    across = fitting([x for xs, _ in series.values() for x in xs], left, width - 14, log[0])
    floor = height - 40
    if reach is None:
        up = fitting([y for _, ys in series.values() for y in ys], floor, 12, log[1])
    else:
        up = Scale(*reach, floor, 12)
    frame = Plane(across, up, width, height, left)
    parts = [frame.axes(*titles, *write)]
    for number, (name, (xs, ys)) in enumerate(series.items()):
        parts.append(line(frame, name, xs, ys, number, dots))
    return picture(width, height + below, "".join(parts) + moved(legend, height + 6), said)


def line(frame: Plane, name: str, xs: Sequence[float], ys: Sequence[float], number: int, dots: bool) -> str:
    """One series; every other one is dashed, so that colour is not needed to tell them apart."""
    known = [(frame.x(x), frame.y(y)) for x, y in zip(xs, ys, strict=True) if drawable(frame, y)]
    if not known:
        return ""
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in known)
    tint = colour(number)
    marks = "".join(f'<circle class="dot {tint}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in known) if dots else ""
    dash = DASHES[number % 3]
    return f'<g><title>{for_page(name)}</title><polyline class="line {tint}"{dash} points="{points}"/>{marks}</g>'


def drawable(frame: Plane, value: float) -> bool:
    return math.isfinite(value) and (value > 0 or not frame.y.log)


def legend_of(names: Sequence[str], width: float, solid: bool = False) -> tuple[str, float]:
    """Names with a bit of their line, or a `solid` square, in rows of at most `width`, and the height they take."""
    if len(names) < 2:
        return "", 0.0
    parts, x, y = [], 14.0, 12.0
    for number, name in enumerate(names):
        wide = 30 + LETTER * len(name) + 14
        if x > 14 and x + wide > width:
            x, y = 14.0, y + 19
        if solid:
            square = f'x="{x + 8:.1f}" y="{y - 11:.1f}" width="14" height="14"'
            parts.append(f'<rect class="dot {colour(number)}" {square}/>')
        else:
            parts.append(f'<path class="line {colour(number)}"{DASHES[number % 3]} d="M{x:.1f} {y - 4:.1f}h22"/>')
        parts.append(text(x + 28, y, name, "start"))
        x += wide
    return "".join(parts), y + 14


def moved(content: str, down: float) -> str:
    return f'<g transform="translate(0 {down:.1f})">{content}</g>' if content else ""


def bars(
    rows: Sequence[tuple[str, Sequence[float]]],
    kinds: Sequence[str],
    said: str,
    *,
    most: float = 1.0,
    write: Callable[[float], str] = share,
    width: float = 460,
) -> str:
    """A bar a row, its parts side by side in the colours of `kinds`; `most` is the length of a full bar."""
    step, top = 20.0, 8.0
    left = min(190.0, 16 + LETTER * max(len(name) for name, _ in rows))
    room = width - left - 58
    parts = [f'<path class="grid" d="M{left:.1f} {top}V{top + step * len(rows):.1f}"/>']
    for number, (name, values) in enumerate(rows):
        parts.append(bar(name, values, kinds, (left, top + number * step, room / most), write))
    legend, below = legend_of(kinds, width, solid=True)
    height = top + step * len(rows) + 6
    return picture(width, height + below, "".join(parts) + moved(legend, height + 2), said)


def bar(
    name: str,
    values: Sequence[float],
    kinds: Sequence[str],
    place: tuple[float, float, float],
    write: Callable[[float], str],
) -> str:
    """One row: its name, cut at the front where it is long, its parts, and their sum."""
    left, y, unit = place
    shown = name if len(name) <= 26 else "…" + name[-25:]
    parts, x = [text(left - 6, y + 14, shown, "end")], left
    for number, (kind, value) in enumerate(zip(kinds, values, strict=True)):
        said = f"<title>{for_page(f'{name}: {kind} {write(value)}')}</title>"
        size = f'x="{x:.1f}" y="{y + 3:.1f}" width="{max(0.0, value * unit):.1f}" height="14"'
        parts.append(f'<rect class="dot {colour(number)}" {size}>{said}</rect>')
        x += value * unit
    parts.append(text(x + 6, y + 14, write(sum(values)), "start"))
    return "".join(parts)
