"""weft's own API: the networks that can be asked, and what they say of an input."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from weft.serve.catalogue import Catalogue
from weft.serve.config import ServeConfig


def routes(catalogue: Catalogue, config: ServeConfig) -> APIRouter:
    """`/api/v1/…`."""
    router = APIRouter(prefix="/api/v1")

    @router.get("/models")
    def models() -> list[dict[str, Any]]:
        return [{"name": entry.name} for entry in catalogue.runs()]

    return router
