"""The list of comparisons, and one comparison: what the report has, kept fresh, and more that can be asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from markupsafe import Markup

from weft.disk import brief, read_object
from weft.errors import WeftError
from weft.report import charts
from weft.report.columns import Column, columns
from weft.report.page import confusions, curves, learning, verdict_charts
from weft.serve.catalogue import Entry
from weft.serve.pages.comparisons.disagreements import WHICH, disagreement
from weft.serve.pages.comparisons.settings import settings_that_differ
from weft.serve.pages.comparisons.summaries import Comparison, comparisons
from weft.serve.pages.numbers import whole
from weft.serve.pages.runs.run_view import sent
from weft.serve.pages.site import PageRoute, Site
from weft.serve.pages.study_folders import is_running, listed, state
from weft.studies.results.load import Result
from weft.studies.results.summary import curves as spread_curves

NAMED = 3  # candidates that the list names


def routes(site: Site) -> APIRouter:
    """/comparisons…"""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)
    known = comparisons()

    @router.get("/comparisons")
    def every(request: Request) -> Response:
        return listed(site, request, "comparisons.html.j2", site.catalogue.comparisons(), about)

    @router.get("/comparisons/{name}")
    def comparison(name: str, request: Request) -> Response:
        entry = site.catalogue.comparison(name)
        found, asked = known.read(entry), request.query_params
        return site.live(request, "comparison.html.j2", entry=entry, found=found, **shown(found, asked), **state(entry))

    @router.get("/comparisons/{name}/files/{path:path}")
    def file(name: str, path: str) -> Response:
        return sent(site.catalogue.comparison(name).file(*path.split("/")))

    return router


def about(entry: Entry) -> dict[str, Any]:
    """A comparison in the list."""
    said: dict[str, Any] = {"name": entry.name, "running": is_running(entry.path), "title": entry.name, "said": ""}
    try:
        study = read_object(entry.path / "study.json")
        runs = [run["name"] for run in study["runs"]]
        done = sum((entry.path / "runs" / str(name) / "record.json").is_file() for name in runs)
        names = [str(each["name"]) for each in study["candidates"]]
        few = ", ".join([*names[:NAMED], *(["…"] if len(names) > NAMED else [])])
        said |= {"title": f"{few} on {study['facts']['name']}", "budget": str(study["budget"])}
        said |= {"runs": len(runs), "done": done, "candidates": len(names)}
    except (WeftError, KeyError, TypeError) as error:
        said["said"] = brief(error)
    said["changed"] = entry.path.stat().st_mtime
    return said


def shown(found: Comparison, asked: Any) -> dict[str, Any]:
    """What the view shows, as the address asks for it."""
    summary = found.summary
    rows = summary["rows"]
    every = columns(summary["metric"], rows)
    known = [each for each in every if each.key == "score" or any(row.get(each.key) is not None for row in rows)]
    tints = {row["name"]: number for number, row in enumerate(rows)}
    drawn = [column for column in known if column.drawn]
    up, across = chosen_columns(drawn, asked)
    seeds = asked.get("seeds") == "1"
    page = whole(asked.get("page"))
    apart = disagreement(found, asked.get("first", ""), asked.get("second", ""), asked.get("which", "all"), page)
    names, settings = settings_that_differ(found.collection.results)
    return {
        "summary": summary,
        "columns": known,
        "tints": {name: charts.colour(number) for name, number in tints.items()},
        "drawn": drawn,
        "up": up,
        "across": across,
        "scatters": [Markup(charts.scatter(rows, across, up, tints, wide)) for wide in (True, False)],
        "seeds": seeds,
        "curves": [Markup(chart) for chart in (of_seeds(found, tints) if seeds else curves(summary, tints)) if chart],
        "learning": Markup(learning(summary, tints)),
        "verdicts": [{**verdict, "chart": Markup(chart)} for verdict, chart in verdict_charts(summary)],
        "confusions": list(confusions(summary)),
        "mistakes": found.mistakes,
        "apart": apart,
        "which": WHICH,
        "candidates": [row["name"] for row in rows if row["name"] in found.chosen()],
        "settings": settings,
        "setting_names": names,
    }


def chosen_columns(known: list[Column], asked: Any) -> tuple[Column, Column]:
    """The columns that are set against each other; score and compute where nothing was said."""
    by_key = {column.key: column for column in known}
    up = by_key.get(asked.get("up", "score"), known[0])
    usual = by_key.get("core_seconds", known[-1])
    across = by_key.get(asked.get("across", ""), usual)
    if across is up:
        across = next((column for column in known if column is not up), up)
    return up, across


def of_seeds(found: Comparison, tints: dict[str, int]) -> Iterator[str]:
    """The same charts with a line a run, in the colour of its candidate."""
    titles = {"metric": f"{found.summary['metric']} on the validation split", "loss": "training loss",
              "validation_loss": "validation loss"}  # fmt: skip
    lines = {
        called(result): spread_curves([result]) for result in found.collection.results if result.record is not None
    }
    numbers = {
        called(result): tints[result.candidate] for result in found.collection.results if result.candidate in tints
    }
    for key, title in titles.items():
        series = {name: line[key] for name, line in lines.items() if name in numbers}
        yield charts.lines(series, numbers, ("epoch", title), log=key != "metric")


def called(result: Result) -> str:
    share = f", {result.share:.0%} of the rows" if result.share != 1 else ""
    return f"{result.candidate}, seed {result.seed}{share}"
