"""What all views share: what there is to show, templates, files for browsers, and refusals that people can read."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader

from weft.disk import brief
from weft.errors import WeftError
from weft.report.columns import duration, scaled, share
from weft.report.page import asset, environment, style
from weft.serve.catalogue import Catalogue, NotServed
from weft.serve.config import ServeConfig
from weft.serve.pages.numbers import ago, metric
from weft.serve.pages.runs.curve_store import CurveStore
from weft.serve.pages.runs.run_index import RunIndex
from weft.serve.refusal import Refusal

STATIC = {"page.js": "text/javascript", "report.js": "text/javascript", "page.css": "text/css", "style.css": "text/css"}
BADGES = {"finished": "good", "running": "live", "failed": "warn", "unreadable": "warn"}


@dataclass
class Site:
    """What the views are made from; `app.state` has the networks in memory and says when the server ends."""

    app: FastAPI
    catalogue: Catalogue
    config: ServeConfig
    index: RunIndex = field(init=False)
    curves: CurveStore = field(default_factory=CurveStore)

    def __post_init__(self) -> None:
        self.index = RunIndex(self.catalogue)

    def page(self, name: str, status: int = 200, **values: Any) -> HTMLResponse:
        """A view; `status` is that of HTTP."""
        text = templates().get_template(name).render(site=self, starting=bool(self.config.data), **values)
        return HTMLResponse(text, status, {"cache-control": "no-cache"})

    def live(self, request: Request, name: str, **values: Any) -> Response:
        """A view that is asked for again and again: nothing is sent to who has it already."""
        response = self.page(name, **values)
        tag = f'"{blake2b(bytes(response.body), digest_size=8).hexdigest()}"'
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"etag": tag})
        response.headers["etag"] = tag
        return response


@cache
def templates() -> Environment:
    """The views' templates beside those of reports."""
    found = environment(PackageLoader("weft.serve.pages", "templates"))
    found.filters |= {"duration": duration, "scaled": scaled, "share": share, "ago": ago, "metric": metric}
    found.globals |= {"badges": BADGES, "version": versions}
    return found


@cache
def static(name: str) -> str:
    """A file for browsers."""
    if name == "style.css":
        return style()
    if name == "report.js":
        return asset(name)
    return files("weft.serve.pages").joinpath("static", name).read_text(encoding="utf-8")


@cache
def versions(name: str) -> str:
    """What changes when a file for browsers does, so that they may keep it."""
    return blake2b(static(name).encode(), digest_size=4).hexdigest()


class PageRoute(APIRoute):
    """A view: who reads it in a browser is told on a page what is wrong, others as everywhere."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        inner = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await inner(request)
            except FileNotFoundError:
                return refused(request, NotServed("what this page shows was deleted a moment ago; load it again"))
            except (WeftError, Refusal) as error:
                return refused(request, error)

        return handle


def refused(request: Request, error: WeftError | Refusal) -> Response:
    """A page that says what is wrong, for those who read pages."""
    if "text/html" not in request.headers.get("accept", ""):
        raise error
    status = error.status if isinstance(error, Refusal) else 404 if isinstance(error, NotServed) else 422
    template, starting = templates().get_template("error.html.j2"), bool(request.app.state.config.data)
    return HTMLResponse(template.render(status=status, said=brief(error), starting=starting), status)
