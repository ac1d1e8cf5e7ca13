"""Searches for settings: what was tried, which settings matter, and the trials as runs."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from markupsafe import Markup

from weft.errors import WeftError
from weft.report.chart import brief as brief_number
from weft.report.parallel import parallel
from weft.report.tuning import caveat, history, importance_bars
from weft.serve.catalogue import JOURNAL, Catalogue, Entry
from weft.serve.pages.site import PageRoute, Site
from weft.serve.pages.study_folders import Latest, is_running, listed, state
from weft.studies.tune.trials import stored_searches, summary
from weft.training.storage.run_folder import RunFolder

SHOWN = 200  # trials in the table


def routes(site: Site) -> APIRouter:
    """/tuning…"""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)
    known = Latest(stamp, searches)

    @router.get("/tuning")
    def every(request: Request) -> Response:
        return listed(site, request, "searches.html.j2", site.catalogue.searches(), about)

    @router.get("/tuning/{name}")
    def search(name: str, request: Request) -> Response:
        entry = site.catalogue.search(name)
        return site.live(
            request, "search.html.j2", entry=entry, runs=runs_of(site.catalogue, entry), shown=SHOWN, written=written,
            found=[drawn(each) for each in known.read(entry)], **state(entry),
        )  # fmt: skip

    return router


def stamp(entry: Entry) -> tuple[int, int]:
    """What changes when a trial begins or ends."""
    status = entry.file(JOURNAL).stat()
    return status.st_mtime_ns, status.st_size


def searches(entry: Entry) -> list[dict[str, Any]]:
    """What the searches of a folder have found; which settings matter takes a second to find out."""
    source, model = asked_of(entry)
    return [summary(each, source, model) for each in stored_searches(entry.path / JOURNAL)]


def asked_of(entry: Entry) -> tuple[str, str]:
    """Source and network, which every trial has."""
    for path in sorted((entry.path / "trials").glob("trial-*"))[:3]:
        try:
            config = RunFolder(path).config()
            return config.source, config.model
        except WeftError:
            continue
    return "", entry.name


def about(entry: Entry) -> dict[str, Any]:
    """A search in the list."""
    source, model = asked_of(entry)
    trials = sum(1 for _ in (entry.path / "trials").glob("trial-*"))
    said = {"source": source, "model": model, "trials": trials, "running": is_running(entry.path)}
    return {"name": entry.name, "changed": (entry.path / JOURNAL).stat().st_mtime, **said}


def drawn(found: dict[str, Any]) -> dict[str, Any]:
    """A search with its charts, the best trials first."""
    trials = sorted(found["trials"], key=lambda trial: -(trial["value"] if trial["value"] is not None else -9e9))
    settings = sorted({name for trial in trials for name in trial["settings"]})
    sure = caveat(found) if found["importance"] else ""
    charts = [
        ("What was found, trial by trial", history(found["trials"]), "A dot a trial; the line is the best so far."),
        ("Which settings matter", importance_bars(found["importance"]),
         f"Share of the variance of the results that a setting explains, {sure}."),
        ("All trials at once", parallel(trials, settings, "result"),
         "A line a trial, from setting to setting; the three best stand out."),
    ]  # fmt: skip
    shown = [(heading, Markup(chart), said) for heading, chart, said in charts if chart]
    return {**found, "trials": trials, "settings": settings, "charts": shown}


def runs_of(catalogue: Catalogue, entry: Entry) -> dict[int, str]:
    """The names of the trials' runs by their numbers."""
    found = {}
    for run in catalogue.runs():
        number = run.path.name.removeprefix("trial-")
        if run.path.parent == entry.path / "trials" and number.isdigit():
            found[int(number)] = run.name
    return found


def written(value: Any) -> str:
    return brief_number(value) if isinstance(value, float) else str(value)[:60]
