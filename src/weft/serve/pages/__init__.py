"""The web page: runs, one run, comparisons, searches, predictions, starting a comparison, and what the API is.

Views are HTML made on the server from Jinja templates and the charts of `weft.report`; what a reader has chosen stands
in the address. `static/page.js` keeps them fresh and needs nothing from elsewhere. `routes(app)` is all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import APIRouter, FastAPI


def routes(app: FastAPI) -> APIRouter:
    """All views, from what `app.state` holds."""
    from fastapi import APIRouter
    from fastapi.responses import Response

    from weft.serve.pages import documentation, predict, tuning
    from weft.serve.pages.comparisons import comparison_view
    from weft.serve.pages.runs import run_view, runs_view
    from weft.serve.pages.site import STATIC, Site, static
    from weft.serve.pages.start import start_view

    router = APIRouter(include_in_schema=False)
    site = Site(app, app.state.catalogue, app.state.config)
    for view in (runs_view, run_view, comparison_view, tuning, predict, start_view, documentation):
        router.include_router(view.routes(site))

    def offer(name: str, kind: str) -> None:
        @router.get(f"/{name}")
        def file() -> Response:
            return Response(static(name), media_type=kind, headers={"cache-control": "max-age=31536000"})

    for name, kind in STATIC.items():
        offer(name, kind)
    return router
