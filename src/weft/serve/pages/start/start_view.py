"""Choose a source, look at it, name a time, start a comparison; watch it, stop it, go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, RedirectResponse, Response

from weft.serve.body import Bodies
from weft.serve.catalogue import NotServed
from weft.serve.pages.site import PageRoute, Site
from weft.serve.pages.start.looks import Looks
from weft.serve.pages.start.processes import LOG, Processes, started_in
from weft.serve.pages.start.sources import Place, Sources
from weft.serve.pages.study_folders import is_running, tail
from weft.studies.compare.candidates import PRESETS
from weft.training.storage.run_folder import name_for

FORM = 1 << 14  # bytes of a form


def routes(site: Site) -> APIRouter:
    """/start…, where there are folders of --data."""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)
    if not site.config.data:
        return router
    sources, looks, processes = Sources(site.config.data), Looks(), Processes(output_folder(site))
    site.catalogue.add(processes.folder)
    bodies = Bodies(FORM, site.config.timeout)

    @router.get("/start")
    def start(request: Request, source: str = "") -> Response:
        place = sources.find(source) if source else None
        listed = sources.below(place) if place else sources.top()
        return site.live(
            request, "start.html.j2", place=place, listed=listed, pictures=sources.pictures(place) if place else 0,
            above=above(place), look=seen(looks, place), started=started(site, processes), presets=list(PRESETS),
            there=place is not None and (processes.folder / name_for(place.source) / "study.json").is_file(),
        )  # fmt: skip

    @router.get("/start/sheet.png")
    def sheet(source: str) -> Response:
        look = looks.get(sources.find(source))
        if look is None or not look.sheet.is_file():
            raise NotServed("there is no sheet of this source")
        return FileResponse(look.sheet, media_type="image/png")

    @router.post("/start/look")
    async def begin_look(request: Request) -> Response:
        form = await fields(request, bodies)
        place = sources.find(form.get("source", ""))
        looks.begin(place)
        return back(f"/start?source={quote(place.key)}")

    @router.post("/start/compare")
    async def compare(request: Request) -> Response:
        form = await fields(request, bodies)
        place = sources.find(form.get("source", ""))
        processes.start(place, form.get("time", ""), form.get("models", "families"))
        site.catalogue.forget()
        return back("/start#started")

    @router.post("/start/stop")
    async def stop(request: Request) -> Response:
        form = await fields(request, bodies)
        processes.stop(folder_of(processes, form))
        return back("/start#started")

    @router.post("/start/go-on")
    async def go_on(request: Request) -> Response:
        form = await fields(request, bodies)
        before = started_in(folder_of(processes, form))
        place = sources.of(before.source) if before is not None else None
        if before is None or place is None:
            raise NotServed("the source of this comparison is not below the folders of --data")
        processes.start(place, form.get("time", "") or before.time, before.models)
        return back("/start#started")

    return router


def output_folder(site: Site) -> Path:
    """Where comparisons go: the folder of comparisons that is served, else one in the first folder, or here."""
    folders = site.catalogue.folders
    own = next((folder for folder in folders if folder.name == "comparisons"), None)
    return own or (folders[0] if folders else Path.cwd()) / "comparisons"


async def fields(request: Request, bodies: Bodies) -> dict[str, str]:
    """The fields of a form."""
    async with bodies.read(request) as body:
        return {name: values[0] for name, values in parse_qs(body.decode(errors="replace")).items()}


def back(address: str) -> Response:
    return RedirectResponse(address, 303)


def folder_of(processes: Processes, form: dict[str, str]) -> Path:
    """The folder of a comparison that the page has started."""
    name = form.get("name", "")
    if name not in processes.listed():
        raise NotServed(f"the page has started no comparison {name[:100]!r}")
    return processes.folder / name


def above(place: Place | None) -> str | None:
    """The key of the folder that a place lies in."""
    if place is None or "/" not in place.key:
        return None
    return place.key.rpartition("/")[0]


def seen(looks: Looks, place: Place | None) -> dict[str, Any]:
    """What a look has found: state, and what there is to show."""
    look = looks.get(place) if place is not None else None
    if look is None:
        return {"state": "none"}
    found = look.poll()
    if found is None:
        return {"state": "looking"}
    if "error" in found:
        return {"state": "failed", "said": str(found["error"])}
    return {"state": "done", "sheet": look.sheet.is_file(), **found}


def started(site: Site, processes: Processes) -> list[dict[str, Any]]:
    """What the page has started, those under way first."""
    found = []
    names = {entry.path: entry.name for entry in site.catalogue.comparisons()}
    for name, each in processes.listed().items():
        folder = processes.folder / name
        running = each.running or is_running(folder)
        said = {"folder": name, "running": running, "stoppable": each.running, "source": each.source, "time": each.time}
        found.append({**said, "log": tail(folder / LOG)[-4000:], "comparison": names.get(folder, "")})
    return sorted(found, key=lambda each: not each["running"])
