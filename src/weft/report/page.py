"""report.html: one file with everything in it, from the summary of a study."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from jinja2 import BaseLoader, ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from weft.report import charts, heat
from weft.report.chart import width_classes
from weft.report.columns import Column, columns, written
from weft.report.words import breakable
from weft.terminal import shown

Summary = dict[str, Any]
FEW, WIDE = 4, 14  # classes above which a confusion is listed too, and above which its matrix needs the page's width
COMMONEST = 10  # confusions that are listed


def render(summary: Summary, mistakes: dict[str, Any] | None = None) -> str:
    """The page as text."""
    rows = summary["rows"]
    every = columns(summary["metric"], rows)
    known = [each for each in every if each.key == "score" or any(row.get(each.key) is not None for row in rows)]
    tints = {row["name"]: number for number, row in enumerate(rows)}
    return template("report.html.j2").render(
        summary=summary,
        columns=known,
        tints={name: charts.colour(number) for name, number in tints.items()},
        drawn=[column for column in known if column.drawn],
        scatters=list(scatters(summary, [column for column in known if column.drawn], tints)),
        curves=[Markup(chart) for chart in curves(summary, tints) if chart],
        learning=Markup(learning(summary, tints)),
        verdicts=[{**verdict, "chart": Markup(chart)} for verdict, chart in verdict_charts(summary)],
        confusions=list(confusions(summary)),
        mistakes=mistakes or {"candidate": "", "examples": []},
        style=Markup(style()),
        script=Markup(asset("report.js")),
    )


def template(name: str) -> Template:
    """A template of a page."""
    return environment().get_template(name)


def environment(*others: BaseLoader) -> Environment:
    """Where templates are found, these and `others`: what comes from outside is escaped, and shown as text."""
    found = Environment(
        loader=ChoiceLoader([*others, PackageLoader("weft.report", "pages")]), autoescape=True, finalize=shown,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    found.filters |= {"cell": written, "breakable": breakable, "moment": moment}
    return found


def moment(seconds: float) -> str:
    """A time since the beginning: 4:05."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def asset(name: str) -> str:
    """A file beside the template."""
    return files("weft.report").joinpath("pages", name).read_text(encoding="utf-8")


def style() -> str:
    """The style sheet of a page: its charts' part, which standalone charts use too, and the rest."""
    return chart_style() + asset("report.css")


def chart_style() -> str:
    """The style sheet of charts alone."""
    return asset("chart.css") + width_classes()


def scatters(summary: Summary, known: list[Column], tints: dict[str, int]) -> Iterator[dict[str, Any]]:
    """A chart for every two columns; the page shows one at a time."""
    for up, across in itertools.combinations(known, 2):
        drawn = [charts.scatter(summary["rows"], across, up, tints, wide) for wide in (True, False)]
        if all(drawn):
            yield {"up": up.key, "across": across.key, "wide": Markup(drawn[0]), "narrow": Markup(drawn[1])}


def curves(summary: Summary, tints: dict[str, int]) -> Iterator[str]:
    """Validation metric, training and validation loss by epoch."""
    found = summary["curves"]
    metric = {name: line["metric"] for name, line in found.items()}
    chosen = summary.get("own_metric") or summary["metric"]
    yield charts.lines(metric, tints, ("epoch", f"{chosen.replace('_', ' ')} on the validation split"))
    for key, title in (("loss", "training loss"), ("validation_loss", "validation loss")):
        yield charts.lines({name: line.get(key) for name, line in found.items()}, tints, ("epoch", title), log=True)


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


def confusions(summary: Summary) -> Iterator[Summary]:
    """Confusions in the order of the leaderboard: a matrix, where it can be read, and the commonest of them."""
    classes = summary["source"]["classes"]
    for row in summary["rows"]:
        matrix = summary["confusion"].get(row["name"])
        if matrix is None or len(matrix) < 2:
            continue
        small = len(matrix) <= heat.MANY
        yield {
            "name": row["name"],
            "of": whose(row["seeds"], sum(map(sum, matrix)), row.get("folds")),
            "chart": Markup(heat.confusion(row["name"], matrix, classes)) if small else "",
            "wide": small and len(matrix) > WIDE,
            "commonest": heat.commonest(matrix, classes, COMMONEST) if len(matrix) > FEW else [],
        }


def whose(seeds: int, answers: int, folds: int | None = None) -> str:
    """Which runs a confusion counts."""
    each = f"{answers // max(seeds, 1):,}"
    if folds:
        several = f"sum of {seeds} repetitions of {folds} runs, {each} answers a repetition"
        return f"{folds} runs, one a fold, {each} answers in all" if seeds == 1 else several
    if seeds == 1:
        return f"one run, {each} answers"
    return f"sum of {seeds} runs with different seeds, {each} answers each"
