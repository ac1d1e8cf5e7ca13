"""Line charts and bars that carry their own legend, for pictures that stand alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from weft.report.chart import HEIGHT, WIDTH, Plane, Scale, brief, fitting, picture, room_for, short
from weft.report.charts import colour
from weft.report.columns import share
from weft.report.words import LINE, block, text, width, wrapped
from weft.terminal import for_page

Points = tuple[Sequence[float], Sequence[float]]  # x and y, of one length
DASHES = ("", ' stroke-dasharray="7 3"', ' stroke-dasharray="2 3"')


def curves(
    series: Mapping[str, Points],
    titles: tuple[str, str],
    said: str,
    *,
    log: tuple[bool, bool] = (False, False),
    reach: tuple[float, float] | None = None,
    dots: bool = False,
    whole: bool = False,
    bands: Mapping[str, Points] | None = None,
    write: tuple[Callable[[float], str], Callable[[float], str]] = (short, brief),
) -> str:
    """A line a series with a legend below; `reach` fixes the ends of the y axis, `whole` says that x are numbers of
    things, and `bands` has for some series the low and high ends of intervals."""
    legend, below = legend_of(list(series), WIDTH)
    bands = bands or {}
    floor, top = HEIGHT - Plane.bottom, Plane.top
    every = [y for _, ys in series.values() for y in ys] + [y for ends in bands.values() for end in ends for y in end]
    up = Scale(*reach, floor, top) if reach is not None else fitting(every, floor, top, log[1])
    left = room_for(map(write[1], up.ticks()))
    across = fitting([x for xs, _ in series.values() for x in xs], left, WIDTH - Plane.right, log[0], whole)
    frame = Plane(across, up, left=left)
    parts = [frame.axes(*titles, *write)]
    for number, (name, (xs, ys)) in enumerate(series.items()):
        if name in bands:
            parts.append(ribbon(frame, xs, bands[name], number))
        parts.append(line(frame, name, xs, ys, number, dots))
    return picture(WIDTH, HEIGHT + below, "".join(parts) + moved(legend, HEIGHT + 6), said)


def ribbon(frame: Plane, xs: Sequence[float], ends: Points, number: int) -> str:
    """The intervals of a series, as a band."""
    low, high = ([(frame.x(x), frame.y(y)) for x, y in zip(xs, end, strict=True)] for end in ends)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*high, *reversed(low)])
    return f'<polygon class="band {colour(number)}" points="{points}"/>'


def line(frame: Plane, name: str, xs: Sequence[float], ys: Sequence[float], number: int, dots: bool) -> str:
    """One series; every other one is dashed, so that colour is not needed to tell them apart. A point alone, which
    makes no line, is a dot."""
    known = [(frame.x(x), frame.y(y)) for x, y in zip(xs, ys, strict=True) if drawable(frame, y)]
    if not known:
        return ""
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in known)
    tint = colour(number)
    marked = known if dots or len(known) == 1 else []
    marks = "".join(f'<circle class="dot {tint}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in marked)
    dash = DASHES[number % 3]
    return f'<g><title>{for_page(name)}</title><polyline class="line {tint}"{dash} points="{points}"/>{marks}</g>'


def drawable(frame: Plane, value: float) -> bool:
    return math.isfinite(value) and (value > 0 or not frame.y.log)


def legend_of(names: Sequence[str], room: float, solid: bool = False) -> tuple[str, float]:
    """Names with a bit of their line, or a `solid` square, in rows of at most `room`, and the height they take."""
    if len(names) < 2:
        return "", 0.0
    parts, x, y = [], 10.0, 12.0
    for number, name in enumerate(names):
        lines = wrapped(name, room - 56, most=3)
        wide = 28 + max(map(width, lines)) + 14
        if x > 10 and x + wide > room:
            x, y = 10.0, y + 19
        if solid:
            square = f'x="{x + 8:.1f}" y="{y - 11:.1f}" width="14" height="14"'
            parts.append(f'<rect class="dot {colour(number)}" {square}/>')
        else:
            parts.append(f'<path class="line {colour(number)}"{DASHES[number % 3]} d="M{x:.1f} {y - 4:.1f}h22"/>')
        parts.append(block(x + 28, y, lines, "start"))
        y += LINE * (len(lines) - 1)
        x += wide if len(lines) == 1 else room
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
) -> str:
    """A bar a row, its parts side by side in the colours of `kinds`; `most` is the length of a full bar."""
    names = [wrapped(name, 0.42 * WIDTH, most=3) for name, _ in rows]
    left = 14 + max(width(line) for lines in names for line in lines)
    unit = (WIDTH - left - 10 - max(width(write(sum(values))) for _, values in rows)) / most
    parts, y = [], 6.0
    for lines, (name, values) in zip(names, rows, strict=True):
        high = 7 + LINE * len(lines)
        parts.append(block(left - 6, y + 13, lines, "end"))
        parts.append(bar(name, values, kinds, (left, y + high / 2 - 8, unit), write))
        y += high
    parts.append(f'<path class="grid" d="M{left:.1f} 4V{y:.1f}"/>')
    legend, below = legend_of(kinds, WIDTH, solid=True)
    return picture(WIDTH, y + 6 + below, "".join(parts) + moved(legend, y + 8), said)


def bar(
    name: str,
    values: Sequence[float],
    kinds: Sequence[str],
    place: tuple[float, float, float],
    write: Callable[[float], str],
) -> str:
    """The parts of one row, and their sum."""
    left, y, unit = place
    parts, x = [], left
    for number, (kind, value) in enumerate(zip(kinds, values, strict=True)):
        said = f"<title>{for_page(f'{name}: {kind} {write(value)}')}</title>"
        size = f'x="{x:.1f}" y="{y:.1f}" width="{max(0.0, value * unit):.1f}" height="14"'
        parts.append(f'<rect class="dot {colour(number)}" {size}>{said}</rect>')
        x += value * unit
    parts.append(text(x + 6, y + 11, write(sum(values)), "start"))
    return "".join(parts)
