"""Two charts of answers: how often they are right by their confidence, and points of a plane coloured by class."""

from __future__ import annotations

from collections.abc import Sequence

from weft.report.chart import HEIGHT, WIDTH, Plane, Scale, picture, short
from weft.report.charts import COLOURS, colour
from weft.report.columns import share
from weft.report.words import LINE, block, text, width, wrapped
from weft.terminal import for_page

MISTAKEN = 7  # the colour of mistakes, as in confusions


def reliability(bins: Sequence[Sequence[float]]) -> str:
    """A bar a bin of (examples, summed confidence, right answers): its accuracy; below, how many examples it has."""
    wide, height = WIDTH, HEIGHT
    frame = Plane(Scale(0, 1, 44, wide - 14), Scale(0, 1.02, height - Plane.bottom, Plane.top), left=44)
    parts = [frame.axes("confidence", "accuracy", short, short)]
    counts, side = [count for count, *_ in bins], (frame.x(1) - frame.x(0)) / len(bins)
    total, largest = sum(counts), max(counts)
    gap = 0.0
    for number, (count, confidence, right) in enumerate(bins):
        if not count:
            continue
        gap += abs(confidence - right) / total
        left, top = frame.x(0) + number * side, frame.y(right / count)
        words = f"confidence {confidence / count:.2f}: {share(right / count)} of {count:,.0f} right"
        box = f'x="{left + 1:.1f}" y="{top:.1f}" width="{side - 2:.1f}" height="{frame.y(0) - top:.1f}"'
        parts.append(f'<rect class="dot c0" {box}><title>{for_page(words)}</title></rect>')
        tall = 46 * count / largest
        bar = f'x="{left + 1:.1f}" y="{height + 52 - tall:.1f}" width="{side - 2:.1f}" height="{tall:.1f}"'
        parts.append(f'<rect class="dot c6" {bar}><title>{share(count / total)} of the examples</title></rect>')
    ends = f"M{frame.x(0):.1f} {frame.y(0):.1f}L{frame.x(1):.1f} {frame.y(1):.1f}"
    parts.append(f'<path class="front" d="{ends}"/>')
    parts.append(text((frame.x(0) + frame.x(1)) / 2, height + 68, "share of the examples", kind="title"))
    return picture(wide, height + 76, "".join(parts), f"Accuracy by confidence; calibration error {share(gap)}")


def cloud(
    points: Sequence[Sequence[float]], labels: Sequence[int], wrong: Sequence[bool], names: Sequence[str], way: str
) -> str:
    """Points (x, y) coloured by class, or, of more classes than there are colours, by whether they were answered
    right; mistakes have a ring. The axes have no unit."""
    wide, height = WIDTH, 340.0
    xs, ys = ([point[n] for point in points] for n in (0, 1))
    across, down = Scale(min(xs), max(xs), 14, wide - 14), Scale(min(ys), max(ys), height - 14, 14)
    many = len(names) > COLOURS
    parts = []
    for x, y, label, mistaken in sorted(zip(xs, ys, labels, wrong, strict=True), key=lambda each: each[3]):
        at = f'cx="{across(x):.1f}" cy="{down(y):.1f}"'
        said = for_page(names[label] + (" (mistaken)" if mistaken else ""))
        tint = colour((MISTAKEN if mistaken else 0) if many else label)
        dot = f'<circle class="dot {tint}" {at} r="3.5"><title>{said}</title></circle>'
        parts.append(f"<g>{dot}{ring(at) if mistaken else ''}</g>")
    key = [("right", 0, False), ("mistaken", MISTAKEN, True)] if many else [
        *((name, number, False) for number, name in enumerate(names)), ("ringed: mistaken", -1, True)
    ]  # fmt: skip
    legend, below = class_legend(key)
    parts.append(f'<g transform="translate(0 {height + 4:.1f})">{legend}</g>')
    said = f"Features of {len(points)} examples of {len(names)} classes in two dimensions, by {way}"
    return picture(wide, height + below, "".join(parts), said)


def ring(at: str) -> str:
    return f'<circle {at} r="6" style="fill: none; stroke: var(--ink); stroke-width: 1.2"/>'


def class_legend(key: Sequence[tuple[str, int, bool]]) -> tuple[str, float]:
    """A dot of a colour (none if it is negative), a ring if there is one, and a name; and the height that they take."""
    parts, x, y = [], 14.0, 14.0
    for name, number, ringed in key:
        lines = wrapped(name, WIDTH - 42, most=2)
        wide = 14 + max(map(width, lines)) + 14
        if x > 14 and x + wide > WIDTH:
            x, y = 14.0, y + 19
        at = f'cx="{x + 4:.1f}" cy="{y - 4:.1f}"'
        parts.append(f'<circle class="dot {colour(number)}" {at} r="5"/>' if number >= 0 else "")
        parts.append(ring(at) if ringed else "")
        parts.append(block(x + 14, y, lines, "start"))
        y += LINE * (len(lines) - 1)
        x += wide if len(lines) == 1 else WIDTH
    return "".join(parts), y + 14
