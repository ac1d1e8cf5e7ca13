"""Searches for settings: what was tried, which settings matter, and the trials as runs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from markupsafe import Markup

from weft.errors import WeftError
from weft.report.chart import brief as brief_number
from weft.report.parallel import parallel
from weft.report.tuning import history, importance_bars
from weft.serve.catalogue import JOURNAL, Catalogue, Entry
from weft.serve.pages.comparisons.summaries import is_running
from weft.serve.pages.runs.run_view import tail
from weft.serve.pages.site import PageRoute, Site
from weft.studies.tune.trials import stored_searches, summary
from weft.training.storage.run_folder import RunFolder

KEPT = 8  # searches in memory
SHOWN = 200  # trials in the table


def routes(site: Site) -> APIRouter:
    """/tuning…"""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)
    searches = Searches()

    @router.get("/tuning")
    def listed(request: Request) -> Response:
        found = [about(entry) for entry in site.catalogue.searches()]
        found.sort(key=lambda each: -each["changed"])
        return site.live(request, "searches.html.j2", found=found)

    @router.get("/tuning/{name}")
    def search(name: str, request: Request) -> Response:
        entry = site.catalogue.search(name)
        log = entry.path / "log.txt"
        return site.live(
            request, "search.html.j2", entry=entry, running=is_running(entry.path), runs=runs_of(site.catalogue, entry),
            found=[drawn(each) for each in searches.read(entry)], shown=SHOWN, written=written,
            log=tail(log) if log.is_file() and not log.is_symlink() else "",
        )  # fmt: skip

    return router


class Searches:
    """The searches that were asked for last: which settings matter takes a second to find out."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Path, tuple[tuple[int, int], list[dict[str, Any]]]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, entry: Entry) -> list[dict[str, Any]]:
        """What the searches of a folder have found."""
        status = entry.file(JOURNAL).stat()
        stamp = status.st_mtime_ns, status.st_size
        with self._lock:
            known = self._kept.pop(entry.path, None)
            if known is None or known[0] != stamp:
                source, model = asked_of(entry)
                known = stamp, [summary(each, source, model) for each in stored_searches(entry.path / JOURNAL)]
            self._kept[entry.path] = known
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return known[1]


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
    charts = [
        ("What was found, trial by trial", history(found["trials"]), "A dot a trial; the line is the best so far."),
        ("Which settings matter", importance_bars(found["importance"]),
         "Share of the variance of the results that a setting explains, over the trials that were made."),
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
