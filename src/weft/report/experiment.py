"""The page of an experiment: a published table, what was measured beside it, and which of its orderings held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup
from rich.console import Console

from weft.report.chart import WIDTH, Plane, Scale, fitting, picture, short
from weft.report.charts import colour, interval
from weft.report.columns import duration, scaled
from weft.report.page import asset, style, template
from weft.report.words import LINE, block, text, width, wrapped
from weft.terminal import for_page

Summary = dict[str, Any]
WORDS = {"perplexity": "perplexity", "sst2": "SST-2, %", "mnli": "MNLI, %"}
UNITS = ("images/s/core", "training images/s/core", "core-days")  # quantities that are called by their unit
BADGES = {"confirmed": "good", "contradicted": "warn"}


def render_experiment(summary: Summary, page: str = "experiment.html.j2") -> str:
    """The page as text."""
    return template(page).render(
        summary=summary,
        verdicts=[{**found, "chart": Markup(chart)} for found, chart in verdicts(summary)],
        charts=[Markup(chart) for chart in charts(summary)],
        heading=heading,
        figure=figure,
        published=published,
        duration=lambda value: "–" if value is None else duration(value),
        scaled=scaled,
        badges=BADGES,
        style=Markup(style()),
        script=Markup(asset("report.js")),
    )


def heading(quantity: str) -> str:
    return quantity if quantity in UNITS else WORDS.get(quantity, f"{quantity}, %")


def figure(row: Summary, quantity: str) -> str:
    """What was measured, with its interval; an en dash where nothing was."""
    found = row["measured"].get(quantity)
    if found is None:
        return "–"
    if quantity in UNITS:
        return f"{scaled(found['mean'])} ({scaled(found['low'])}…{scaled(found['high'])})"
    digits = 2 if found["mean"] < 100 and quantity == "perplexity" else 1
    return f"{found['mean']:.{digits}f} ({found['low']:.{digits}f}…{found['high']:.{digits}f})"


def published(row: Summary, quantity: str) -> str:
    value = row["published"].get(quantity)
    return "–" if value is None else f"{value:g}"


def print_orderings(summary: Summary, console: Console) -> None:
    """The orderings and what else is to be said, on a terminal."""
    for ordering in summary["orderings"]:
        console.print(f"• {ordering['sentence']}", highlight=False)
    for sentence in (summary["conclusion"], summary["time"], *summary["notes"]):
        console.print(sentence, highlight=False)
    for problem in summary["problems"]:
        console.print(f"note: {problem}", style="yellow", highlight=False)


def verdicts(summary: Summary) -> Iterator[tuple[Summary, str]]:
    """Each ordering with its interval; those of one quantity are on one scale."""
    reach: dict[str, float] = {}
    for found in summary["orderings"]:
        ends = max(abs(found["low"]), abs(found["high"]))
        reach[found["quantity"]] = max(reach.get(found["quantity"], 0.0), ends)
    for found in summary["orderings"]:
        widest = min(reach[found["quantity"]], 1.0) or 1.0
        yield found, interval(found["low"], found["mean"], found["high"], widest, found["shown"], found["sentence"])


def charts(summary: Summary) -> Iterator[str]:
    """For every quantity what was measured and what was published, row by row in the same order."""
    for quantity in summary["quantities"]:
        here = [(row["name"], row["measured"].get(quantity)) for row in summary["rows"]]
        there = [(row["name"], as_point(row["published"].get(quantity))) for row in summary["rows"]]
        for points, where in ((here, "measured here"), (there, "published")):
            if any(point is not None for _, point in points):
                yield ladder(points, f"{heading(quantity)}, {where}", log=quantity in UNITS)


def as_point(value: float | None) -> dict[str, float] | None:
    return None if value is None else {"mean": value, "low": value, "high": value}


def ladder(points: list[tuple[str, dict[str, float] | None]], title: str, log: bool = False) -> str:
    """Rows one below the other, each with a dot and the whisker of its interval; speeds, which span decades, on a
    logarithmic scale."""
    known = [point for _, point in points if point is not None]
    names = [wrapped(name, 0.45 * WIDTH, most=3, bold=True) for name, _ in points]
    left = 14 + max(width(line, bold=True) for lines in names for line in lines)
    step, edge = 6 + LINE * max(2, *map(len, names)), WIDTH - Plane.right
    height = Plane.top + step * len(points) + 30
    across = fitting([point[end] for point in known for end in ("low", "high")], left, edge, log)
    frame = Plane(across, Scale(0, len(points), Plane.top, height - 30), height=height, left=left, bottom=30)
    parts = [text(4, 14, title, "start", "title")]
    used = 0.0
    for value in frame.x.ticks():
        x, half = frame.x(value), width(short(value)) / 2
        parts.append(f'<path class="grid" d="M{x:.1f} {frame.top}V{height - 30}"/>')
        if x - half > used:  # else it would stand in the last one
            parts.append(text(x, height - 14, short(value)))
            used = x + half + 6
    parts += [rung(frame, number, names[number], *point) for number, point in enumerate(points)]
    said = "; ".join(f"{name} {point['mean']:.3g}" for name, point in points if point is not None)
    return picture(WIDTH, height, "".join(parts), f"{title}: {said}")


def rung(frame: Plane, number: int, lines: list[str], name: str, point: dict[str, float] | None) -> str:
    """One row of a ladder."""
    y = frame.y(number + 0.5)
    label = block(frame.left - 8, y + 4 - 7 * (len(lines) - 1), lines, "end", "label")
    if point is None:
        return label
    low, mean, high = (frame.x(point[end]) for end in ("low", "mean", "high"))
    said = f"{name}: {point['mean']:.4g} ({point['low']:.4g}…{point['high']:.4g})"
    return (
        f"<g><title>{for_page(said)}</title>{label}"
        f'<path class="line {colour(number)}" d="M{low:.1f} {y:.1f}H{high:.1f}"/>'
        f'<circle class="dot {colour(number)}" cx="{mean:.1f}" cy="{y:.1f}" r="5.5"/></g>'
    )
