"""What Prometheus reads at /metrics: requests, refusals, batches and queues."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class OfModel:
    """The metrics of one network."""

    size: Histogram
    seconds: Histogram

    def batch(self, size: int, seconds: float) -> None:
        """A batch was computed."""
        self.size.observe(size)
        self.seconds.observe(seconds)


class Metrics:
    """A registry of its own, so that several servers can live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        own: dict[str, Any] = {"registry": self.registry, "namespace": "weft"}
        self.requests = Counter("requests", "Requests answered.", ["protocol", "status"], **own)
        self.duration = Histogram("request_seconds", "From request to answer.", ["protocol"], buckets=SECONDS, **own)
        self.in_progress = Gauge("requests_in_progress", "Requests being answered.", **own)
        self.loaded = Gauge("models_loaded", "Networks in memory.", **own)
        self.batch_size = Histogram("batch_size", "Inputs computed together.", ["model"], buckets=SIZES, **own)
        self.batch_seconds = Histogram("batch_seconds", "Time of a batch.", ["model"], buckets=SECONDS, **own)

    def of_model(self, name: str) -> OfModel:
        return OfModel(self.batch_size.labels(name), self.batch_seconds.labels(name))

    def forget(self, name: str) -> None:
        """A network was let go: its series end, so that there are never more of them than networks in memory."""
        for metric in (self.batch_size, self.batch_seconds):
            with suppress(KeyError):  # it was never loaded, or was kept under two names
                metric.remove(name)

    def page(self) -> Response:
        return Response(generate_latest(self.registry), media_type=CONTENT_TYPE_LATEST)


PROTOCOLS = {"models": "huggingface", "v2": "inference_v2", "api": "weft"}  # by the first part of the path


class Counted:
    """Middleware that counts and times every request."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, started = 0, time.perf_counter()

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with self.metrics.in_progress.track_inprogress():
            try:
                await self.app(scope, receive, noted)
            finally:
                protocol = PROTOCOLS.get(scope["path"].lstrip("/").partition("/")[0], "page")  # `OPTIONS *` has no /
                self.metrics.requests.labels(protocol, status).inc()
                self.metrics.duration.labels(protocol).observe(time.perf_counter() - started)
