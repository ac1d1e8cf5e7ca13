"""report.html: one file with everything in it, from the summary of a study."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from weft.report import charts, heat
from weft.report.columns import Column, columns, uneven, written
from weft.terminal import shown

Summary = dict[str, Any]


def render(summary: Summary, mistakes: dict[str, Any] | None = None) -> str:
    """The page as text."""
    tokens = any(row.get("tokens") for row in summary["rows"])
    known = columns(summary["metric"], tokens, uneven(summary["rows"]))
    tints = {row["name"]: number for number, row in enumerate(summary["rows"])}
    environment = Environment(
        loader=PackageLoader("weft.report", "pages"), autoescape=True, finalize=shown, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["cell"] = written
    return environment.get_template("report.html.j2").render(
        summary=summary,
        columns=known,
        tints={name: charts.colour(number) for name, number in tints.items()},
        scatters=list(scatters(summary, known, tints)),
        curves=[Markup(chart) for chart in curves(summary, tints) if chart],
        learning=Markup(learning(summary, tints)),
        verdicts=[{**verdict, "chart": Markup(chart)} for verdict, chart in verdict_charts(summary)],
        confusions=[(name, Markup(chart)) for name, chart in confusions(summary)],
        mistakes=mistakes or {"candidate": "", "examples": []},
        style=Markup(style()),
        script=Markup(asset("report.js")),
    )


def asset(name: str) -> str:
    """A file beside the template."""
    return files("weft.report").joinpath("pages", name).read_text(encoding="utf-8")


def style() -> str:
    """The style sheet of a page: its charts' part, which standalone charts use too, and the rest."""
    return asset("chart.css") + asset("report.css")


def scatters(summary: Summary, known: list[Column], tints: dict[str, int]) -> Iterator[dict[str, Any]]:
    """A chart for every two columns; the page shows one at a time."""
    for up, across in itertools.combinations(known, 2):
        chart = charts.scatter(summary["rows"], across, up, tints)
        if chart:
            yield {"up": up.key, "across": across.key, "chart": Markup(chart)}


def curves(summary: Summary, tints: dict[str, int]) -> Iterator[str]:
    """Selection metric and training loss by epoch."""
    found = summary["curves"]
    metric = {name: line["metric"] for name, line in found.items()}
    yield charts.lines(metric, tints, ("epoch", f"{summary['metric']} on the validation split"))
    yield charts.lines(
        {name: line["loss"] for name, line in found.items()}, tints, ("epoch", "training loss"), log=True
    )


def learning(summary: Summary, tints: dict[str, int]) -> str:
    """Score against the share of the training rows, where it was asked for."""
    series: dict[str, charts.Line] = {}
    for point in summary["learning"]:
        line = series.setdefault(point["candidate"], {"x": [], "mean": [], "low": [], "high": []})
        line["x"].append(100 * point["share"])
        for name in ("mean", "low", "high"):
            line[name].append(min(1.0, max(-1.0, point[name])))
    several = {name: line for name, line in series.items() if len(line["x"]) > 1}
    return charts.lines(several, tints, ("% of the training rows", summary["metric"]))


def verdict_charts(summary: Summary) -> Iterator[tuple[dict[str, Any], str]]:
    """Each verdict with its interval, all on one scale."""
    ends = [abs(verdict[end]) for verdict in summary["verdicts"] for end in ("low", "high")]
    reach = min(max(ends, default=1.0), 1.0) or 1.0
    for verdict in summary["verdicts"]:
        chart = charts.interval(
            verdict["low"], verdict["mean"], verdict["high"], reach, verdict["shown"], verdict["sentence"]
        )
        yield verdict, chart


def confusions(summary: Summary) -> Iterator[tuple[str, str]]:
    """Confusion matrices in the order of the leaderboard."""
    for row in summary["rows"]:
        matrix = summary["confusion"].get(row["name"])
        if matrix is not None and 1 < len(matrix) <= 40:
            yield row["name"], heat.confusion(row["name"], matrix, summary["source"]["classes"])
