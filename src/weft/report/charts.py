"""The charts of a report: one column against another with the Pareto front, curves with their spread, intervals."""

from __future__ import annotations

from weft.report.chart import Plane, picture, plane, short
from weft.report.columns import Column, Row
from weft.report.pareto import front
from weft.report.words import LINE, block, width, wrapped
from weft.terminal import for_page

COLOURS = 10  # classes c0 … c9 of the style sheet
Line = dict[str, list[float]]
Box = tuple[float, float, float, float]  # left, top, right, bottom


def colour(number: int) -> str:
    return f"c{number % COLOURS}"


def scatter(rows: list[Row], across: Column, up: Column, colours: dict[str, int], wide: bool = True) -> str:
    """Every candidate as a point, a score with its interval, the Pareto front as a line; for a page or a phone."""
    known = [row for row in rows if row.get(across.key) is not None and row.get(up.key) is not None]
    if not known:
        return ""
    ends = [row[end] for row in known for end in ("low", "high")] if up.key == "score" else []
    values = [row[across.key] for row in known], [row[up.key] for row in known] + ends
    frame = plane(*values, (across.log, up.log), (760, 400) if wide else (390, 360), up.write)
    best = front(known, up, across)
    path = " ".join(f"{'ML'[i > 0]}{frame.x(r[across.key]):.1f} {frame.y(r[up.key]):.1f}" for i, r in enumerate(best))
    parts = [frame.axes(across.title, up.title, across.write, up.write), f'<path class="front" d="{path}"/>']
    taken: list[Box] = []
    for row in sorted(known, key=lambda row: row not in best):  # the front's names come first
        parts.append(point(frame, row, across, up, colours, row in best, taken))
    names = ", ".join(row["name"] for row in best)
    return frame.svg("".join(parts), f"{up.title} against {across.title}; on the Pareto front: {names}")


def point(
    frame: Plane, row: Row, across: Column, up: Column, colours: dict[str, int], best: bool, taken: list[Box]
) -> str:
    """One candidate: whisker, dot, name and a tooltip."""
    x, y, tint = frame.x(row[across.key]), frame.y(row[up.key]), colour(colours[row["name"]])
    said = f"{row['name']}: {up.title} {up.write(row[up.key])}, {across.title} {across.write(row[across.key])}"
    whisker = ""
    if up.key == "score":
        low, high = frame.y(row["low"]), frame.y(row["high"])
        whisker = f'<path class="line {tint}" opacity=".4" d="M{x:.1f} {low:.1f}V{high:.1f}"/>'
    return (
        f"<g><title>{for_page(said)}</title>{whisker}"
        f'<circle class="dot {tint}" cx="{x:.1f}" cy="{y:.1f}" r="{6 if best else 4.5}"/>'
        f"{label(frame, x, y, row['name'], taken)}</g>"
    )


def label(frame: Plane, x: float, y: float, name: str, taken: list[Box]) -> str:
    """A name beside its point, at the first of eight places where it covers no other; else its tooltip must do.

    A name that is long for the picture takes two or three lines.
    """
    lines = wrapped(name, 0.4 * frame.width, most=3, bold=True)
    wide, high = max(width(line, bold=True) for line in lines) + 2, LINE * len(lines)
    floor = frame.height - frame.bottom
    for right, down in ((1, -5), (-1, -5), (1, 15), (-1, 15), (1, -19), (-1, -19), (1, 29), (-1, 29)):
        left = x + 8 if right > 0 else x - 8 - wide
        foot = y + down if down < 0 else y + down + high - LINE
        box = left, foot - high, left + wide, foot + 3
        inside = box[0] >= frame.left and box[2] <= frame.width and box[1] >= frame.top - 8 and box[3] <= floor
        if inside and not any(overlaps(box, other) for other in taken):
            taken.append(box)
            first = foot - high + LINE
            return block(x + 8 * right, first, lines, "start" if right > 0 else "end", "label")
    return ""


def overlaps(first: Box, second: Box) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]


def lines(series: dict[str, Line], colours: dict[str, int], titles: tuple[str, str], log: bool = False) -> str:
    """Mean lines with a band from the lowest to the highest run; x and y are titled by `titles`."""
    drawn = {name: line for name, line in series.items() if line}
    if not drawn:
        return ""
    across = [value for line in drawn.values() for value in (line["x"][0], line["x"][-1])]
    up = [value for line in drawn.values() for end in ("low", "high") for value in (min(line[end]), max(line[end]))]
    frame = plane(across, up, (False, log and min(up) > 0))
    parts = [frame.axes(*titles, short, short)]
    for name, line in drawn.items():
        parts.append(band(frame, name, line, colour(colours[name]), colours[name]))
    return frame.svg("".join(parts), f"{titles[1]} by {titles[0]} for {', '.join(drawn)}")


def band(frame: Plane, name: str, line: Line, tint: str, number: int) -> str:
    """One candidate's band and line; every other one is dashed, so that colour is not needed to tell them apart."""
    xs = [frame.x(x) for x in line["x"]]
    there = " ".join(f"{x:.1f} {frame.y(y):.1f}" for x, y in zip(xs, line["high"], strict=True))
    back = " ".join(f"{x:.1f} {frame.y(y):.1f}" for x, y in zip(xs[::-1], line["low"][::-1], strict=True))
    mean = " ".join(f"{x:.1f} {frame.y(y):.1f}" for x, y in zip(xs, line["mean"], strict=True))
    dashes = ("", ' stroke-dasharray="7 3"', ' stroke-dasharray="2 3"')[number % 3]
    alone = len(xs) == 1  # makes no line, and no band
    dot = f'<circle class="dot {tint}" cx="{xs[0]:.1f}" cy="{frame.y(line["mean"][0]):.1f}" r="3.5"/>' if alone else ""
    return (
        f'<g><title>{for_page(name)}</title><polygon class="band {tint}" points="{there} {back}"/>'
        f'<polyline class="line {tint}"{dashes} points="{mean}"/>{dot}</g>'
    )


def interval(low: float, mean: float, high: float, reach: float, shown: bool, said: str) -> str:
    """A difference on a line with its zero in the middle: the whisker is its corrected 95 % interval."""
    width, middle = 220.0, 110.0

    def at(value: float) -> float:
        return middle + max(-1.0, min(1.0, value / reach)) * (middle - 8)

    kind = "strong" if shown else "weak"
    content = (
        f'<path class="grid" d="M{middle} 2V22"/><path class="whisker {kind}" d="M{at(low):.1f} 12H{at(high):.1f}"/>'
        f'<circle class="mark {kind}" cx="{at(mean):.1f}" cy="12" r="5"/>'
    )
    return picture(width, 24, content, said, "interval")
