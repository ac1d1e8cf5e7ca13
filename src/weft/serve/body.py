"""The body of a request: read within limits of size, time and memory, and understood as JSON or as plain bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft.serve.refusal import JSON, Refusal

REST = 10.0  # seconds for what is left of a body that was refused
TOGETHER = 16  # times the largest body: what all bodies that are held at one moment may take
VALUES = 1_000_000  # of one JSON: while it is parsed no other thread runs, for a twentieth of a second with so many


@dataclass
class Bodies:
    """Reads bodies; `limit` bytes each, at most `seconds` long, and only so many bytes at a time."""

    limit: int
    seconds: float
    held: int = 0

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """The bytes of a request; they count as held until the block is left.

        Those that were announced and have not come take no room: who sends slowly would keep it from others.
        """
        self._check_declared(request)
        parts: list[bytes] = []
        try:
            await self._receive(request, parts)
            yield b"".join(parts)
        finally:
            self.held -= sum(map(len, parts))

    def _check_declared(self, request: Request) -> None:
        """Refuse what the headers say to be too much, or in a form that is not understood."""
        encoding = request.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise Refusal(415, f"a body in the encoding {encoding[:40]} is not understood; send it as it is")
        stated = int(request.headers.get("content-length", 0))  # the server has checked that it is a number
        if stated > self.limit:
            raise self._too_long()
        self._require_room(stated)

    def _require_room(self, more: int = 0) -> None:
        if self.held + more > TOGETHER * self.limit:
            raise Refusal(503, "too many large requests are being read; try again in a moment", 1)

    async def _receive(self, request: Request, parts: list[bytes]) -> None:
        size = 0
        try:
            async with asyncio.timeout(self.seconds):
                async for part in request.stream():
                    parts.append(part)
                    self.held += len(part)
                    size += len(part)
                    if size > self.limit:
                        raise self._too_long()
                    self._require_room()
        except TimeoutError:
            raise Refusal(408, f"the request was not complete after {self.seconds:g} seconds; send it faster") from None
        except ClientDisconnect:
            raise Refusal(400, "the client went away") from None

    def _too_long(self) -> Refusal:
        return Refusal(413, f"a request may have {self.limit:,} bytes and this one has more; send a smaller one")


class ReadToTheEnd:
    """Middleware: whose connection ends with the answer is refused when all of the body has come.

    A connection that is closed while the client still sends is reset, and the refusal lost with it; others stay open.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (b"connection", b"close") not in [(name, value.lower()) for name, value in scope.get("headers", ())]:
            await self.app(scope, receive, send)
            return
        more = True

        async def received() -> Message:
            nonlocal more
            message = await receive()
            more = bool(message.get("more_body", False))
            return message

        async def answered(message: Message) -> None:
            if message.get("status", 200) >= 400:
                with suppress(TimeoutError):
                    async with asyncio.timeout(REST):
                        while more:
                            await received()
            await send(message)

        await self.app(scope, received, answered)


def media_type(request: Request) -> str:
    """The content type without its parameters; empty where none is stated."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def is_json(request: Request, body: bytes) -> bool:
    """Whether a body is to be read as JSON: it says so, or looks like it and is not said to be something else.

    What curl sends is said to be a form where nobody told it better.
    """
    stated = media_type(request)
    if stated == JSON or stated.endswith("+json"):
        return True
    return stated in ("", "application/x-www-form-urlencoded") and body.lstrip()[:1] == b"{"


def parsed(body: bytes) -> dict[str, Any]:
    """The JSON object of a body."""
    if sum(map(body.count, (b",", b"[", b"{"))) > VALUES:
        raise Refusal(
            413, f"JSON may hold {VALUES:,} values and this holds more; send less, files in base64, or binary tensors"
        )
    try:
        found = from_json(body, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        why = str(error)
        if "surrogate" in why or "hex escape" in why:
            raise Refusal(422, f"an escape \\u… is no whole letter ({why[:200]}); send whole letters") from error
        raise Refusal(400, f'the body is no JSON ({why[:200]}); send an object such as {{"inputs": …}}') from error
    if not isinstance(found, dict):
        raise Refusal(422, 'the body is JSON but no object; send one such as {"inputs": …}')
    return found


def known_fields(content: dict[str, Any], *names: str) -> None:
    """Refuse fields that mean nothing here: a misspelt one would be ignored in silence."""
    unknown = [name for name in content if name not in names]
    if unknown:
        raise Refusal(422, f"there is no field {unknown[0][:60]!r}; there are {', '.join(names)}")


def whole_number(content: dict[str, Any], name: str, default: int) -> int:
    """A field that counts something, at least 1."""
    value = content.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Refusal(422, f"{name} must be a whole number of at least 1")
    return value
