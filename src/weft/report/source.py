"""The page of a source: its splits, the sizes of its inputs and its classes as pictures, and what to look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from weft.report.chart import brief, plane, short
from weft.report.curves import bars
from weft.report.page import asset, style, template
from weft.report.words import text

SIGNED = '<meta name="generator" content="weft data">'  # in each page, so that it is known again
BINS = 30
TALL = 12  # classes beyond which one chart of them would be tall and narrow
MOST_CLASSES = 60  # that have a bar each; of more, the commonest and the rarest


def render_source(summary: dict[str, Any]) -> str:
    """The page as text."""
    return template("source.html.j2").render(
        summary=summary,
        charts=[(each["title"], Markup(histogram(each)), said(each)) for each in summary["measures"]],
        classes=[Markup(part) for part in class_bars(summary["balance"])],
        signed=Markup(SIGNED),
        style=Markup(style()),
        script=Markup(asset("report.js")),
    )


def histogram(measure: dict[str, Any]) -> str:
    """How many inputs have which size; a dashed line stands at the size that a run would take. Nothing where all have
    one size, which needs no picture."""
    if len(set(measure["values"])) == 1:
        return ""
    counts, edges = binned(measure["values"])
    frame = plane([*edges, measure["mark"]], [0.0, max(counts)], whole=True)
    parts = [frame.axes(measure["title"], "training rows", brief, short)]
    for count, low, high in zip(counts, edges, edges[1:], strict=False):
        if count:
            x, y = frame.x(low), frame.y(count)
            size = f'width="{max(2.0, frame.x(high) - x - 1):.1f}" height="{frame.y(0) - y:.1f}"'
            about = f"<title>{brief(low)} to {brief(high)}: {count:,}</title>"
            parts.append(f'<rect class="dot c0" x="{x:.1f}" y="{y:.1f}" {size}>{about}</rect>')
    at = frame.x(measure["mark"])
    parts.append(f'<path class="front" d="M{at:.1f} {frame.top:.1f}V{frame.y(0):.1f}"/>')
    parts.append(text(frame.width - frame.right, 14, f"dashed: {brief(measure['mark'])}", "end"))
    return frame.svg("".join(parts), f"{measure['title']}: {said(measure)}")


def binned(values: Sequence[int]) -> tuple[list[int], list[float]]:
    """Counts of values in equal bins, and the edges of the bins."""
    low, high = min(values), max(values)
    bins = max(1, min(BINS, high - low))
    width = (high - low) / bins or 1.0
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, int((value - low) / width))] += 1
    return counts, [low + number * width for number in range(bins + 1)]


def said(measure: dict[str, Any]) -> str:
    """The same in words."""
    values = sorted(measure["values"])
    if values[0] == values[-1]:
        return f"{values[0]:,} in all {len(values):,} rows; {measure['marked']} is {measure['mark']:,}."
    middle, most = values[len(values) // 2], values[min(len(values) - 1, int(0.95 * len(values)))]
    spread = f"from {values[0]:,} to {values[-1]:,}, half are up to {middle:,}, 95 % up to {most:,}"
    return f"{spread}; {measure['marked']} is {measure['mark']:,}."


def class_bars(balance: dict[str, int]) -> list[str]:
    """Training rows of each class, the commonest first; of many classes in two charts, side by side where there is
    room."""
    ordered = sorted(balance.items(), key=lambda each: -each[1])
    if len(ordered) > MOST_CLASSES:
        ordered = ordered[: MOST_CLASSES // 2] + ordered[-MOST_CLASSES // 2 :]
    if not ordered or not ordered[0][1]:
        return []
    half = -(-len(ordered) // 2) if len(ordered) > TALL else len(ordered)
    return [bars_of(part, ordered[0][1]) for part in (ordered[:half], ordered[half:]) if part]


def bars_of(classes: list[tuple[str, int]], most: int) -> str:
    """A bar a class; one of `most` rows would take all of the width."""
    rows = [(name, (float(count),)) for name, count in classes]
    about = f"{classes[0][0]} has {classes[0][1]:,} training rows, {classes[-1][0]} {classes[-1][1]:,}"
    return bars(rows, ("training rows",), about, most=float(most), write=lambda count: f"{count:,.0f}")
