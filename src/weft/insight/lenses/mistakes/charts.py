"""Two charts of answers: how often they are right by their confidence, and points of a plane coloured by class."""

from __future__ import annotations

from collections.abc import Sequence

from weft.report.chart import Plane, Scale, picture, short, text
from weft.report.charts import COLOURS, colour
from weft.report.columns import share
from weft.report.curves import LETTER
from weft.terminal import for_page


def reliability(bins: Sequence[Sequence[float]], width: float = 460, height: float = 300) -> str:
    """A bar a bin of (examples, summed confidence, right answers): its accuracy; below, how many examples it has."""
    frame = Plane(Scale(0, 1, 58, width - 14), Scale(0, 1.02, height - 40, 12), width, height, left=58)
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
    return picture(width, height + 76, "".join(parts), f"Accuracy by confidence; calibration error {share(gap)}")


def cloud(
    points: Sequence[Sequence[float]], labels: Sequence[int], wrong: Sequence[bool], names: Sequence[str], way: str,
    width: float = 460, height: float = 380,
) -> str:  # fmt: skip
    """Points (x, y) coloured by class with a legend; mistakes have a ring. The axes have no unit."""
    xs, ys = ([point[n] for point in points] for n in (0, 1))
    across, down = Scale(min(xs), max(xs), 14, width - 14), Scale(min(ys), max(ys), height - 14, 14)
    parts = []
    for x, y, label, mistaken in sorted(zip(xs, ys, labels, wrong, strict=True), key=lambda each: each[3]):
        at = f'cx="{across(x):.1f}" cy="{down(y):.1f}"'
        ring = f'<circle {at} r="6" style="fill: none; stroke: var(--ink); stroke-width: 1.2"/>' if mistaken else ""
        said = for_page(names[label] + (" (mistaken)" if mistaken else ""))
        parts.append(f'<g><circle class="dot {colour(label)}" {at} r="3.5"><title>{said}</title></circle>{ring}</g>')
    legend, below = class_legend(names, width) if len(names) <= 2 * COLOURS else ("", 0.0)
    parts.append(f'<g transform="translate(0 {height:.1f})">{legend}</g>')
    said = f"Features of {len(points)} examples of {len(names)} classes in two dimensions, by {way}"
    return picture(width, height + below, "".join(parts), said)


def class_legend(names: Sequence[str], width: float) -> tuple[str, float]:
    """A dot and a name a class, and the height that they take."""
    parts, x, y = [], 14.0, 14.0
    for number, name in enumerate(names):
        wide = 14 + LETTER * len(name) + 14
        if x > 14 and x + wide > width:
            x, y = 14.0, y + 19
        parts.append(f'<circle class="dot {colour(number)}" cx="{x + 4:.1f}" cy="{y - 4:.1f}" r="5"/>')
        parts.append(text(x + 13, y, name, "start"))
        x += wide
    return "".join(parts), y + 10
