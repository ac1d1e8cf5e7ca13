"""Whether the server lives and can be asked, and its metrics: what those ask who look after it."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI, Response
from fastapi.responses import PlainTextResponse

from weft.serve.metrics import Metrics
from weft.serve.protocols.asking import refusals
from weft.serve.refusal import error


def routes(app: FastAPI, metrics: Metrics) -> APIRouter:
    """/livez, /readyz and /metrics."""
    router = APIRouter(tags=["health"])

    @router.get("/livez", summary="Whether the server lives.", response_class=PlainTextResponse)
    async def live() -> Response:
        return PlainTextResponse("ok\n")

    @router.get(
        "/readyz",
        summary="Whether the server takes requests.",
        response_class=PlainTextResponse,
        responses=refusals(503),
    )
    async def ready() -> Response:
        if app.state.ending:
            return error(503, "the server is about to end", {"retry-after": "5"})
        return PlainTextResponse("ok\n")

    @router.get("/metrics", summary="Metrics for Prometheus.", response_class=PlainTextResponse)
    async def read() -> Response:
        return metrics.page()

    return router
