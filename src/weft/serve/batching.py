"""Inputs of many requests computed together: a bounded queue for each network, and batches formed within a window.

An input that comes alone is computed at once. Where others are on their way, or came with the last one, it waits for
them, for `max_delay` at most. While a batch is computed, the next one is handed over as soon as it is full, so that
what computes never waits for the loop. A queue that is full refuses: to be told at once is better than to wait.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.serve.refusal import Refusal

AHEAD = 2  # batches that are computed or wait for it
Compute = Callable[[list[Any]], NDArray[Any]]  # n inputs -> (n, K)


class Observer(Protocol):
    """Is told of every batch, for the metrics."""

    def batch(self, size: int, seconds: float) -> None: ...


@dataclass(frozen=True)
class Window:
    """How batches are formed."""

    max_batch: int
    max_delay: float
    """seconds"""
    max_queue: int
    """inputs accepted and not yet answered"""


@dataclass
class Waiting:
    """An input in the queue."""

    raw: Any
    answer: asyncio.Future[NDArray[Any]]
    came: float
    deadline: float
    gone: Callable[[], bool]
    """whether the client has hung up"""


class Batcher:
    """The queue of one network."""

    def __init__(self, compute: Compute, executor: Executor, window: Window, observer: Observer) -> None:
        self.compute, self.executor, self.window, self.observer = compute, executor, window, observer
        self.accepted = 0
        self.service = 0.0  # seconds that the last batch took
        self._queue: deque[Waiting] = deque()
        self._last = 1  # inputs of the last batch
        self._arrival = asyncio.Event()
        self._turn = asyncio.Event()  # a batch has ended, or another one can be handed over
        self._under_way: set[asyncio.Task[None]] = set()
        self._worker: asyncio.Task[None] | None = None

    @contextmanager
    def accept(self, count: int = 1) -> Iterator[None]:
        """Room for inputs that will be asked about within the block; refused where there is none."""
        self.require_room(count)
        self.accepted += count
        try:
            yield
        finally:
            self.accepted -= count

    def require_room(self, count: int = 1) -> None:
        """Refuse so many inputs where the queue has no place for them."""
        if self.accepted + count > self.window.max_queue:
            wait = max(1, math.ceil(self.accepted / self.window.max_batch * self.service))
            raise Refusal(503, f"{self.accepted} inputs are waiting already; try again in {wait} s", wait)

    async def ask(self, raws: Sequence[Any], deadline: float, gone: Callable[[], bool]) -> NDArray[Any]:
        """(n, K) answers; `deadline` on the loop's clock is when they are of no use any more."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        waiting = [Waiting(raw, loop.create_future(), now, deadline, gone) for raw in raws]
        self._queue.extend(waiting)
        self._arrival.set()
        if self._can_go_ahead():
            self._turn.set()
        if self._worker is None or self._worker.done():
            self._worker = loop.create_task(self._work())
        try:
            async with asyncio.timeout_at(deadline):
                return np.stack(await asyncio.gather(*(one.answer for one in waiting)))
        except TimeoutError:
            raise overrun() from None
        finally:
            for one in waiting:  # of a request that was given up: nobody computes them
                one.answer.cancel()

    async def _work(self) -> None:
        """Batch after batch, while there is something in the queue."""
        while self._queue or self._under_way:
            self._turn.clear()
            if self._queue and not self._under_way:
                await self._gather()
                self._hand_over()
            elif self._can_go_ahead():
                self._hand_over()
            else:
                await self._turn.wait()

    def _can_go_ahead(self) -> bool:
        """Whether a full batch waits that can be handed over before the one before it has ended."""
        return len(self._queue) >= self.window.max_batch and len(self._under_way) < AHEAD

    def _hand_over(self) -> None:
        if batch := self._take():
            task = asyncio.get_running_loop().create_task(self._answer(batch))
            self._under_way.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._turn.set()

    async def _gather(self) -> None:
        """Wait until as many are there as can be expected, though not beyond the window."""
        loop = asyncio.get_running_loop()
        expected = min(self.window.max_batch, max(self._last, self.accepted))
        closing = self._queue[0].came + self.window.max_delay
        while len(self._queue) < expected and (left := closing - loop.time()) > 0:
            self._arrival.clear()
            timer = loop.call_later(left, self._arrival.set)
            await self._arrival.wait()
            timer.cancel()

    def _take(self) -> list[Waiting]:
        """The first of the queue that somebody still waits for."""
        now = asyncio.get_running_loop().time()
        batch: list[Waiting] = []
        while self._queue and len(batch) < self.window.max_batch:
            one = self._queue.popleft()
            if one.answer.done():
                continue
            if one.deadline <= now or one.gone():
                one.answer.set_exception(overrun())
                continue
            batch.append(one)
        return batch

    async def _answer(self, batch: list[Waiting]) -> None:
        """Compute a batch, beside the loop, and hand out the answers."""
        self._last = len(batch)
        try:
            job = asyncio.get_running_loop().run_in_executor(self.executor, self._timed, [one.raw for one in batch])
            answers, self.service = await job
        except Exception as error:
            await self._fail(batch, error)
            return
        self.observer.batch(len(batch), self.service)
        for one, answer in zip(batch, answers, strict=True):
            if not one.answer.done():
                one.answer.set_result(answer)

    def _timed(self, raws: list[Any]) -> tuple[NDArray[Any], float]:
        """The answers, and the seconds that they took."""
        started = time.perf_counter()
        return self.compute(raws), time.perf_counter() - started

    async def _fail(self, batch: list[Waiting], error: Exception) -> None:
        """Of several, each is computed once more alone: what one of them is to blame for costs nobody else."""
        if len(batch) > 1:
            for one in batch:
                await self._answer([one])
        elif not batch[0].answer.done():
            batch[0].answer.set_exception(error)


def overrun() -> Refusal:
    """A request that took too long."""
    return Refusal(503, "the answer was not ready in time; try again when there is less to do", 1)
