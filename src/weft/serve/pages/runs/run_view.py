"""One run: how it goes, what was changed, what went wrong, its files, and the command that repeats it."""

from __future__ import annotations

import asyncio
import shlex
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response

from weft.disk import Damaged, read_object
from weft.errors import WeftError
from weft.serve.catalogue import Entry
from weft.serve.pages.runs.curve_charts import Drawing, draw
from weft.serve.pages.runs.events import Streams, first_byte
from weft.serve.pages.runs.run_index import RunRow, without_curve
from weft.serve.pages.site import PageRoute, Site
from weft.serve.pages.study_folders import tail
from weft.studies.results.reproduce import command_of
from weft.training.config import to_dict
from weft.training.run.kinds import config_class

FILES = 200  # files that are listed
SHOWN = {".json": "application/json", ".jsonl": "text/plain", ".yaml": "text/plain", ".csv": "text/plain",
         ".txt": "text/plain", ".log": "text/plain", ".svg": "image/svg+xml", ".png": "image/png",
         ".html": "text/html"}  # fmt: skip
"""What a browser may show; everything else is saved."""
SAID = ("source", "model", "seed")  # at the top of the page
ALONE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
"""Policy for pages that lie in a run: whoever wrote them, nothing in them runs."""


def routes(site: Site) -> APIRouter:
    """/runs/{name}…"""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)
    streams = Streams()

    @router.get("/runs/{name}")
    def run(name: str, request: Request) -> Response:
        entry = site.catalogue.run(name)
        row, asked = site.index.row(entry), asked_of(site, entry)
        record = record_of(entry)
        curve = site.curves.read(entry.path / "metrics.jsonl")
        drawing = Drawing.read(request.query_params)
        return site.page(
            "run.html.j2", entry=entry, row=row, study=study_of(site, row), drawing=drawing,
            charts=draw({entry.name: curve}, drawing), offset=curve.offset, last=curve.last(),
            rollbacks=curve.rollbacks, changes=changes(asked),
            plan=plan_of(asked), record=record, command=command(entry, row, asked), log=log_of(entry),
            lenses=lenses(entry), files=files(entry), networks=(entry.path / "model.safetensors").is_file(),
        )  # fmt: skip

    @router.get("/runs/{name}/curves")
    def charts(name: str, request: Request) -> Response:
        entry = site.catalogue.run(name)
        curve = site.curves.read(entry.path / "metrics.jsonl")
        drawing = Drawing.read(request.query_params)
        return site.live(request, "charts.html.j2", charts=draw({entry.name: curve}, drawing))

    @router.get("/runs/{name}/events")
    async def events(name: str, request: Request) -> Response:
        entry = await asyncio.to_thread(site.catalogue.run, name)
        start = first_byte(request, request.query_params.get("from"))
        path = entry.path / "metrics.jsonl"
        return streams.response(
            request, path, start, lambda: site.index.row(entry).state, lambda: bool(site.app.state.ending)
        )

    @router.get("/runs/{name}/files/{path:path}")
    def file(name: str, path: str) -> Response:
        return sent(site.catalogue.run(name).file(*path.split("/")))

    return router


def study_of(site: Site, row: RunRow) -> str:
    """The address of the comparison or the search that a run belongs to."""
    is_search = any(entry.name == row.study for entry in site.catalogue.searches())
    return f"/{'tuning' if is_search else 'comparisons'}/{row.study}"


def sent(path: Path) -> Response:
    """A file of a run: shown where that is harmless, else saved."""
    kind = SHOWN.get(path.suffix.lower())
    if kind is None:
        return FileResponse(path, media_type="application/octet-stream", filename=path.name)
    headers = {"content-security-policy": ALONE, "cache-control": "no-cache"}
    return FileResponse(path, media_type=kind, headers=headers)


def asked_of(site: Site, entry: Entry) -> dict[str, Any]:
    """What run.yaml says; nothing where it is damaged, which the row tells."""
    try:
        return site.index.asked(entry)
    except (WeftError, OSError):
        return {}


def record_of(entry: Entry) -> dict[str, Any]:
    """What came out, but for the curve; empty while it has not ended."""
    path = entry.path / "record.json"
    try:
        return without_curve(path) if path.is_file() else {}
    except WeftError:
        return {}


def changes(asked: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Settings that are not the usual ones: name, value, usual value."""
    try:
        usual = to_dict(config_class(str(asked.get("kind", "train")))())
    except WeftError:
        usual = {}
    shown = {name: value for name, value in asked.get("config", {}).items() if name not in SAID}
    return differing(shown, usual)


def differing(values: Any, usual: Any, before: str = "") -> list[tuple[str, Any, Any]]:
    """Settings of a mapping, and of those in it, that another has not, or has otherwise."""
    found: list[tuple[str, Any, Any]] = []
    for name, value in values.items() if isinstance(values, dict) else ():
        other = usual.get(name) if isinstance(usual, dict) else None
        if isinstance(value, dict):
            found += differing(value, other, f"{before}{name}.")
        elif value != other:
            found.append((f"{before}{name}", value, other))
    return found


def plan_of(asked: dict[str, Any]) -> dict[str, Any]:
    """What was measured before the first step."""
    plan = asked.get("plan")
    named = ("lr", "steps_per_epoch", "warmup", "threads", "precision", "compile", "eval_every")
    return {name: plan[name] for name in named if name in plan} if isinstance(plan, dict) else {}


@dataclass(frozen=True)
class Command:
    """A command, and what it is for."""

    does: str
    words: str


def command(entry: Entry, row: RunRow, asked: dict[str, Any]) -> list[Command]:
    """What repeats the run, what goes on with it, and what uses it."""
    found = []
    if row.state == "stopped":
        found.append(Command("goes on with it", shlex.join(["weft", "train", "--resume", str(entry.path)])))
    with suppress(WeftError, KeyError, TypeError, AttributeError):  # where run.yaml is damaged
        found.append(Command("repeats it", command_of({"kind": asked.get("kind"), "config": asked["config"]})))
    if (entry.path / "model.safetensors").is_file():
        found.append(Command("looks inside it", shlex.join(["weft", "inspect", str(entry.path), "all"])))
    return [each for each in found if each.words]


def log_of(entry: Entry) -> str:
    """The end of what a run of a study printed."""
    study = entry.path.parent.parent
    for path in (study / "logs" / f"{entry.path.name}.txt", study / "log.txt"):
        if entry.path.parent.name in ("runs", "trials") and (text := tail(path)):
            return text
    return ""


@dataclass(frozen=True)
class Seen:
    """What a lens found: its page and its sentence."""

    name: str
    title: str
    sentence: str
    page: str


def lenses(entry: Entry) -> list[Seen]:
    """What `weft inspect` has written into the run."""
    folder = entry.path / "insight"
    found = []
    if (folder / "index.html").is_file():
        found.append(Seen("all", "All lenses on one page", "", "insight/index.html"))
    for path in sorted(folder.glob("*.json"))[:40]:
        try:
            content = read_object(path, 1 << 22)
        except Damaged:
            continue
        page = f"insight/{path.stem}.html" if (folder / f"{path.stem}.html").is_file() else ""
        words = [str(content.get(name, ""))[:600] for name in ("title", "sentence")]
        found.append(Seen(path.stem, words[0] or path.stem, words[1], page))
    return found


def files(entry: Entry) -> list[tuple[str, int]]:
    """Names and sizes of the files of a run; links are left out."""
    found = []
    for path in sorted(entry.path.rglob("*")):
        if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
            found.append((path.relative_to(entry.path).as_posix(), path.stat().st_size))
        if len(found) >= FILES:
            break
    return found
