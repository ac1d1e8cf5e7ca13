"""Connections that are cut off when the other side is too slow, and how the server ends.

uvicorn limits how long an idle connection is kept, but not how long a client takes to say what it wants, or to take its
answer: a few hundred such clients would hold all connections.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from weft.serve.protection import HEAD

ASKING = 10.0  # seconds for them, and for the rest of a body that was refused
TAKING = 30.0  # seconds in which a client takes nothing of an answer
MOST = 512  # connections
KEPT = 75  # seconds for an idle one: longer than clients keep theirs, or it would be closed just as they ask
SWITCHING = 0.00002  # seconds after which the thread that serves lets the one that computes go on; usually 0.005


class Connection(H11Protocol):
    """One client. (httptools parses faster, but keeps no limits: of headers, of requests sent ahead, of trailers.)"""

    _asking: asyncio.TimerHandle | None = None
    _taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > MOST and not self._make_room():
            transport.abort()
            return
        self._asking = self.loop.call_later(ASKING, self._cut)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop("_asking")
        elif self._asking is None:  # it has begun to ask again, or goes on with what nobody wants
            self._asking = self.loop.call_later(ASKING, self._cut)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taking = self.loop.call_later(TAKING, self._cut)

    def resume_writing(self) -> None:
        self._stop("_taking")
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop("_asking")
        self._stop("_taking")
        self._unset_keepalive_if_required()  # or it would be held until then
        if self.scope is not None:
            self.scope["state"]["gone"] = True  # what waits in a queue for this client is not computed
        super().connection_lost(exc)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, whether or not its client takes the end of the last answer."""
        super().timeout_keep_alive_handler()
        self._stop("_taking")
        self._taking = self.loop.call_later(TAKING, self._cut)

    def _make_room(self) -> bool:
        """Cut a connection that is kept for what its client may ask next, if there is one."""
        for other in self.connections:
            idle = isinstance(other, Connection) and other.timeout_keep_alive_task is not None
            if idle and not other.transport.is_closing():
                other.transport.abort()
                return True
        return False

    def _stop(self, name: str) -> None:
        timer = getattr(self, name)
        if timer is not None:
            timer.cancel()
            setattr(self, name, None)

    def _cut(self) -> None:
        self.transport.abort()


class Server(uvicorn.Server):
    """Ends when told to: no new connections, all that was accepted is answered, streams are told to stop."""

    def __init__(self, app: FastAPI, patience: float) -> None:
        self.app = app
        sys.setswitchinterval(SWITCHING)
        gc.freeze()  # or all that was imported would be looked through, for a tenth of a second, now and then
        settings = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            timeout_keep_alive=KEPT,
            h11_max_incomplete_event_size=HEAD,
            timeout_graceful_shutdown=int(patience) + 1,
            log_level="warning",
            access_log=False,
            server_header=False,
        )
        super().__init__(settings)

    def handle_exit(self, sig: int, frame: Any) -> None:
        self.app.state.ending = True
        super().handle_exit(sig, frame)
