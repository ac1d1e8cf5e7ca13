"""The server put together: catalogue, networks, protocols, protection.

`app.state` holds `catalogue`, `models`, `config` and `ending`, which becomes true when the server is about to end: a
stream of events stops then.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import torch
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from weft import __version__
from weft.disk import brief
from weft.errors import WeftError
from weft.serve.body import Bodies, ReadToTheEnd
from weft.serve.catalogue import Catalogue, NotServed
from weft.serve.config import ServeConfig
from weft.serve.metrics import Counted, Metrics
from weft.serve.models import Models
from weft.serve.overload import RefusedEarly
from weft.serve.pages import routes as page_routes
from weft.serve.protection import Protection
from weft.serve.protocols import api, health, huggingface, inference_v2
from weft.serve.protocols.asking import Asking, refusals
from weft.serve.refusal import Refusal, error


def make_app(config: ServeConfig) -> FastAPI:
    """The ASGI application for a configuration."""
    if config.threads:
        torch.set_num_threads(config.threads)
    catalogue, metrics = Catalogue(config.places()), Metrics()
    models = Models(catalogue, config, metrics)
    settings: dict[str, Any] = {
        "docs_url": None,
        "redoc_url": None,
        "redirect_slashes": False,
        "responses": refusals(401, 403),
    }
    app = FastAPI(title="weft", version=__version__, lifespan=lifespan, **settings)
    app.state.config, app.state.catalogue, app.state.models, app.state.ending = config, catalogue, models, False
    asking = Asking(models, Bodies(config.max_body, config.timeout))
    for protocol in (api, huggingface, inference_v2):
        app.include_router(protocol.routes(asking))
    app.include_router(health.routes(app, metrics))
    app.include_router(page_routes(app))
    add_refusals(app)
    app.add_middleware(RefusedEarly, models=models)
    app.add_middleware(Protection, config=config)
    app.add_middleware(Counted, metrics=metrics)
    app.add_middleware(ReadToTheEnd)
    return app


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """The threads end with the server."""
    yield
    app.state.models.close()


def add_refusals(app: FastAPI) -> None:
    """Every error in the same shape: a sentence."""

    @app.exception_handler(Refusal)
    async def refused(request: Request, refusal: Refusal) -> Response:
        return refusal.response()

    @app.exception_handler(WeftError)
    async def explained(request: Request, sentence: WeftError) -> Response:
        return error(404 if isinstance(sentence, NotServed) else 422, brief(sentence))

    @app.exception_handler(HTTPException)
    async def plain(request: Request, problem: HTTPException) -> Response:
        words = {404: "there is nothing at this address; /docs lists what there is"}
        return error(problem.status_code, words.get(problem.status_code, problem.detail), dict(problem.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, problem: RequestValidationError) -> Response:
        first = problem.errors()[0]
        return error(422, f"{'.'.join(map(str, first['loc'][1:]))}: {first['msg']}")
