"""Whether the server lives and can be asked, and its metrics: what those ask who look after it."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI, Response

from weft.serve.metrics import Metrics
from weft.serve.refusal import error


def routes(app: FastAPI, metrics: Metrics) -> APIRouter:
    """/livez, /readyz and /metrics."""
    router = APIRouter(tags=["health"])

    @router.get("/livez", summary="Whether the server lives.", response_class=Response)
    async def live() -> Response:
        return Response("ok\n", media_type="text/plain")

    @router.get("/readyz", summary="Whether the server takes requests.", response_class=Response)
    async def ready() -> Response:
        if app.state.ending:
            return error(503, "the server is about to end", {"retry-after": "5"})
        return Response("ok\n", media_type="text/plain")

    @router.get("/metrics", summary="Metrics for Prometheus.", response_class=Response)
    def read() -> Response:
        return metrics.page()

    return router
