"""The server put together: catalogue, networks, protocols, protection."""

from __future__ import annotations

from fastapi import FastAPI

from weft import __version__
from weft.serve import api
from weft.serve.catalogue import Catalogue
from weft.serve.config import ServeConfig


def make_app(config: ServeConfig) -> FastAPI:
    """The ASGI application for a configuration."""
    catalogue = Catalogue(config.places())
    app = FastAPI(title="weft", version=__version__, docs_url=None, redoc_url=None)
    app.include_router(api.routes(catalogue, config))
    return app
