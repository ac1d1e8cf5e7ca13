"""A run as it goes on, as server-sent events: each point of its curve, with the byte of the file behind it as its id.

A browser that lost the connection says which id it saw last, and is sent what came after it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from fastapi import Request
from fastapi.responses import StreamingResponse

from weft.serve.pages.runs.curve_store import parsed
from weft.serve.refusal import Refusal

EVERY = 0.5  # seconds between two looks at the file
QUIET = 15.0  # seconds after which a word is sent that means nothing, so that a dead connection is noticed
AT_ONCE = 1 << 20  # bytes that are read together
MOST = 64  # streams at a time: each takes a connection


@dataclass
class Streams:
    """Counts the streams that are open."""

    open: int = 0

    def response(
        self, request: Request, path: Path, start: int, state: Callable[[], str], ending: Callable[[], bool]
    ) -> StreamingResponse:
        """What comes after byte `start` of a metrics.jsonl, until the run has ended (`state`) or the server does."""
        if self.open >= MOST:
            raise Refusal(503, f"{MOST} pages are watching runs; close one of them", 10)
        self.open += 1

        async def counted() -> AsyncIterator[str]:
            try:
                async for part in events(request, path, start, state, ending):
                    yield part
            finally:
                self.open -= 1

        return StreamingResponse(counted(), media_type="text/event-stream", headers={"cache-control": "no-store"})


async def events(
    request: Request, path: Path, start: int, state: Callable[[], str], ending: Callable[[], bool]
) -> AsyncIterator[str]:
    """The text of the stream."""
    offset, quiet = start, 0.0
    yield "retry: 2000\n\n"
    while not ending() and not await request.is_disconnected():
        now = await asyncio.to_thread(state)
        lines, size = await asyncio.to_thread(lines_after, path, offset)
        if size < offset:  # cut back: it was resumed from an earlier point
            offset = 0
            yield message("reset", {}, 0)
            continue
        for line in lines:
            offset += len(line)
            event = parsed(line)
            if isinstance(event, dict):
                yield message("point", {name: v for name, v in event.items() if not isinstance(v, dict)}, offset)
        if now != "running" and not lines:
            yield message("end", {"state": now}, offset)
            return
        quiet = 0.0 if lines else quiet + EVERY
        if quiet >= QUIET:
            quiet = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(0.0 if len(lines) > 1000 else EVERY)


def message(kind: str, content: dict[str, object], offset: int) -> str:
    """One event; NaN, which JSON lacks, is null."""
    known = {name: None if value != value else value for name, value in content.items()}
    return f"id: {offset}\nevent: {kind}\ndata: {json.dumps(known)}\n\n"


def lines_after(path: Path, offset: int) -> tuple[list[bytes], int]:
    """Whole lines after a byte of a file, and how long it is; a half one waits until its end is written."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(min(offset, size))
            lines = file.read(AT_ONCE).splitlines(keepends=True)
    except OSError:
        return [], 0 if offset == 0 else offset
    return [line for line in lines if line.endswith(b"\n")], size


def first_byte(request: Request, stated: str | None) -> int:
    """Where a stream begins: behind the last event that the browser saw, else where its page said."""
    for words in (request.headers.get("last-event-id"), stated):
        if words and words.isascii() and words.isdigit() and len(words) < 16:
            return int(words)
    return 0
