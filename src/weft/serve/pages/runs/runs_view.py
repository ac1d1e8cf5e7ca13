"""The list of runs, and the curves of several of them in one chart."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response

from weft.serve.pages.runs.curve_charts import Drawing, draw
from weft.serve.pages.runs.listing import COLUMNS, Wish, listing
from weft.serve.pages.site import PageRoute, Site
from weft.serve.refusal import Refusal

MOST = 50  # runs in one chart


def routes(site: Site) -> APIRouter:
    """/ and /curves."""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)

    @router.get("/")
    def runs(request: Request) -> Response:
        found = listing(site.index.rows(), Wish.read(request.query_params))
        return site.live(request, "runs.html.j2", listing=found, columns=COLUMNS)

    @router.get("/curves")
    def curves(request: Request) -> Response:
        names = list(dict.fromkeys(request.query_params.getlist("run")))
        if not names or len(names) > MOST:
            raise Refusal(422, f"choose between 1 and {MOST} runs; {len(names)} were chosen")
        entries = [site.catalogue.run(name) for name in names]
        drawing = Drawing.read(request.query_params)
        found = {entry.name: site.curves.read(entry.path / "metrics.jsonl") for entry in entries}
        running = any(not (entry.path / "record.json").is_file() for entry in entries)
        address = f"/curves?{urlencode(list(request.query_params.multi_items()))}"
        hidden = [("run", name) for name in names]
        return site.live(
            request, "curves.html.j2", names=names, drawing=drawing, running=running, address=address, hidden=hidden,
            charts=draw(found, drawing),
        )  # fmt: skip

    return router
