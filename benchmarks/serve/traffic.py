"""Requests as fast as one process can send them: connections that are kept, answers read with the least effort."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

MOST = 400  # connections


@dataclass(frozen=True)
class Answer:
    """What came back; status 0 where the connection was closed without an answer."""

    status: int
    seconds: float
    body: bytes = b""


def request(
    method: str,
    path: str,
    body: bytes = b"",
    kind: str = "application/octet-stream",
    more: dict[str, str] | None = None,
) -> bytes:
    """A request as bytes; `more` headers replace those of the same name."""
    headers = {"host": "localhost", "content-type": kind, "content-length": str(len(body)), **(more or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1", "replace") + body


class Line(asyncio.Protocol):
    """A connection that asks one thing after another."""

    def __init__(self) -> None:
        self.open = False
        self.buffer = b""
        self.waiting: asyncio.Future[Answer] | None = None
        self.started = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.open = transport, True

    def ask(self, sent: bytes) -> asyncio.Future[Answer]:
        self.waiting = asyncio.get_running_loop().create_future()
        self.started, self.buffer = time.perf_counter(), b""
        self.transport.write(sent)
        return self.waiting

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        place = head.lower().find(b"content-length: ")
        length = int(head[place + 16 :].partition(b"\r\n")[0]) if place >= 0 else 0
        if len(body) >= length:
            self.open = self.open and b"connection: close" not in head.lower()
            self._done(int(head[9:12]), body)

    def connection_lost(self, error: Exception | None) -> None:
        self.open = False
        self._done(0, b"")

    def _done(self, status: int, body: bytes) -> None:
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_result(Answer(status, time.perf_counter() - self.started, body))


async def connect(port: int) -> Line:
    _, line = await asyncio.get_running_loop().create_connection(Line, "127.0.0.1", port)
    return line


async def one_by_one(port: int, sent: bytes, count: int) -> list[Answer]:
    """The same request again and again, each after the answer to the last."""
    line = await connect(port)
    answers = [await line.ask(sent) for _ in range(count)]
    line.transport.close()
    return answers


async def capacity(port: int, sent: bytes, clients: int, seconds: float) -> float:
    """Answers a second when so many clients ask without a pause."""
    end, served = time.perf_counter() + seconds, 0

    async def client() -> None:
        nonlocal served
        line = await connect(port)
        while time.perf_counter() < end:
            answer = await line.ask(sent)  # apart: what is read before a wait is old after it
            served += answer.status == 200
        line.transport.close()

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return served / (time.perf_counter() - started)


async def constant_rate(port: int, sent: bytes, rate: float, seconds: float) -> tuple[list[Answer], int]:
    """Requests at even distances, whether or not the last ones were answered; and how many found no connection."""
    idle = [await connect(port) for _ in range(MOST)]
    answers: list[Answer] = []
    under_way: set[asyncio.Task[None]] = set()
    started, sent_count, lost = time.perf_counter(), 0, 0

    async def ask(line: Line) -> None:
        line = line if line.open else await connect(port)  # the server closes those that were idle for seconds
        answers.append(await line.ask(sent))
        idle.append(line if line.open else await connect(port))

    while (now := time.perf_counter() - started) < seconds:
        while sent_count < now * rate:
            sent_count += 1
            if not idle:
                lost += 1
                continue
            task = asyncio.create_task(ask(idle.pop()))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        await asyncio.sleep(0.001)
    await asyncio.gather(*under_way)
    for line in idle:
        line.transport.close()
    return answers, lost
