"""The page of an experiment: a published table, what was measured beside it, and which of its orderings held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from weft.report.chart import Plane, Scale, fitting, picture, short, text
from weft.report.charts import colour, interval
from weft.report.columns import duration, scaled
from weft.report.page import asset, style
from weft.terminal import for_page, shown

Summary = dict[str, Any]
WORDS = {"perplexity": "perplexity", "sst2": "SST-2, %", "mnli": "MNLI, %"}
BADGES = {"confirmed": "good", "contradicted": "warn"}


def render_experiment(summary: Summary) -> str:
    """The page as text."""
    environment = Environment(
        loader=PackageLoader("weft.report", "pages"), autoescape=True, finalize=shown, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("experiment.html.j2").render(
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
    return WORDS.get(quantity, f"{quantity}, %")


def figure(row: Summary, quantity: str) -> str:
    """What was measured, with its interval; an en dash where nothing was."""
    found = row["measured"].get(quantity)
    if found is None:
        return "–"
    digits = 2 if found["mean"] < 100 and quantity == "perplexity" else 1
    return f"{found['mean']:.{digits}f} ({found['low']:.{digits}f}…{found['high']:.{digits}f})"


def published(row: Summary, quantity: str) -> str:
    value = row["published"].get(quantity)
    return "–" if value is None else f"{value:g}"


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
                yield ladder(points, f"{heading(quantity)}, {where}")


def as_point(value: float | None) -> dict[str, float] | None:
    return None if value is None else {"mean": value, "low": value, "high": value}


def ladder(points: list[tuple[str, dict[str, float] | None]], title: str) -> str:
    """Rows one below the other, each with a dot and the whisker of its interval."""
    known = [point for _, point in points if point is not None]
    left, step, top = 20 + 7.0 * max(len(name) for name, _ in points), 30.0, 12.0
    height = top + step * len(points) + 40
    frame = Plane(
        fitting([point[end] for point in known for end in ("low", "high")], left, 446),
        Scale(0, len(points), top, height - 40),
        height=height,
        left=left,
    )
    parts = [rung(frame, number, name, point) for number, (name, point) in enumerate(points)]
    for value in frame.x.ticks():
        x = frame.x(value)
        parts.append(f'<path class="grid" d="M{x:.1f} {top}V{height - 40}"/>{text(x, height - 24, short(value))}')
    parts.append(text((left + 446) / 2, height - 6, title, kind="title"))
    said = "; ".join(f"{name} {point['mean']:.3g}" for name, point in points if point is not None)
    return picture(460, height, "".join(parts), f"{title}: {said}")


def rung(frame: Plane, number: int, name: str, point: dict[str, float] | None) -> str:
    """One row of a ladder."""
    y = frame.y(number + 0.5)
    label = text(frame.left - 8, y + 4, name, "end", "label")
    if point is None:
        return label
    low, mean, high = (frame.x(point[end]) for end in ("low", "mean", "high"))
    said = f"{name}: {point['mean']:.4g} ({point['low']:.4g}…{point['high']:.4g})"
    return (
        f"<g><title>{for_page(said)}</title>{label}"
        f'<path class="line {colour(number)}" d="M{low:.1f} {y:.1f}H{high:.1f}"/>'
        f'<circle class="dot {colour(number)}" cx="{mean:.1f}" cy="{y:.1f}" r="5.5"/></g>'
    )
