"""The networks that can be asked: runs loaded when they are wanted, the one not wanted for longest let go.

What computes is an `Engine`, which `ENGINES` opens by the name of `--engine`: anything with the members of a Predictor.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from starlette.requests import Request

from weft import machine
from weft.data.config import Modality
from weft.data.transform.transforms import Transform
from weft.disk import brief
from weft.errors import WeftError
from weft.serve.batching import Batcher, Window, overrun
from weft.serve.catalogue import Catalogue, Entry
from weft.serve.config import ServeConfig
from weft.serve.descriptions import WEIGHTS, is_trained
from weft.serve.inputs import Inputs
from weft.serve.metrics import Metrics
from weft.serve.refusal import Refusal
from weft.training.inference.network_folder import NetworkMetadata
from weft.training.inference.predictor import load

Outputs = NDArray[np.floating[Any]]  # (n, K)
TRUSTED = 1.0  # seconds for which a network counts as unchanged
LOADED_AT_ONCE = 4  # further networks are refused while so many are being read
WORTH_SHARING = 0.1  # seconds of a batch on one thread from which on it is computed on all: the others serve meanwhile
TIMED = 3  # first batches, which tell how long an input takes on one thread


class Engine(Protocol):
    """A trained network in use; `training.inference.predictor.Predictor` is one."""

    @property
    def card(self) -> NetworkMetadata: ...
    @property
    def transform(self) -> Transform: ...
    @property
    def classes(self) -> list[str]: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def takes(self) -> Modality: ...
    def outputs(self, raws: Sequence[Any], batch_size: int = 64) -> torch.Tensor:
        """(n, K): logits, or numbers in the unit of the training targets."""
        ...


def on_onnxruntime(run: Path) -> Engine:
    """The network as an ONNX graph, made if it is not in the cache."""
    from weft.export.engine import onnx_predictor  # brings torch's exporter, which is large

    return onnx_predictor(run)


ENGINES: dict[str, Callable[[Path], Engine]] = {"torch": load, "onnx": on_onnxruntime}


@dataclass(frozen=True)
class Model:
    """A network that is loaded, with its queue."""

    name: str
    engine: Engine
    inputs: Inputs
    batcher: Batcher
    decoding: ThreadPoolExecutor

    @property
    def task(self) -> str:
        return self.engine.card.task

    async def answers(self, raws: Sequence[Any], request: Request, deadline: float) -> Outputs:
        """(n, K) outputs of the network for inputs as they came; `deadline` as for `Batcher.ask`."""
        ready = await self._prepared(raws, request, deadline)
        found = await self.batcher.ask(ready, deadline, lambda: hung_up(request))
        if not np.isfinite(found).all():
            raise Refusal(422, f"{self.name} answers with what is no number; its training may have gone wrong")
        return found

    async def _prepared(self, raws: Sequence[Any], request: Request, deadline: float) -> list[Any]:
        """The inputs ready to be computed, one after the other, while somebody waits for them."""
        loop, ready = asyncio.get_running_loop(), []
        for raw in raws:
            if loop.time() >= deadline or hung_up(request):
                raise overrun()
            if self.inputs.is_quick(raw):
                ready.append(self.inputs.prepared(raw))
            else:
                ready.append(await loop.run_in_executor(self.decoding, self.inputs.prepared, raw))
        return ready


def hung_up(request: Request) -> bool:
    """Whether the client has gone, as the connection has noted."""
    return bool(request.scope.get("state", {}).get("gone"))


@dataclass
class Kept:
    """A network in memory, or on its way there."""

    entry: Entry
    changed: int  # when its weights were written
    loading: asyncio.Task[Model]
    trusted_until: float = 0.0  # on the loop's clock: until then nobody looks whether it has changed on the disk


class Models:
    """Loads and keeps networks."""

    def __init__(self, catalogue: Catalogue, config: ServeConfig, metrics: Metrics) -> None:
        self.catalogue, self.config, self.metrics = catalogue, config, metrics
        self.threads = config.threads or machine.cores()
        self.window = Window(config.max_batch, config.max_delay / 1000, config.max_queue)
        self.computing = ThreadPoolExecutor(1, "weft-compute")  # torch itself spreads over the cores
        self.loading = ThreadPoolExecutor(1, "weft-load")
        self.decoding = ThreadPoolExecutor(machine.cores(), "weft-decode", torch.set_num_threads, (1,))
        self.reading = ThreadPoolExecutor(1, "weft-read")  # one large body at a time: parsed, it takes far more memory
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def loaded(self, name: str) -> Model | None:
        """The network of a run, if it is in memory."""
        kept = self._kept.get(name)
        if kept is None or not kept.loading.done() or kept.loading.cancelled() or kept.loading.exception() is not None:
            return None
        return kept.loading.result()

    async def get(self, name: str) -> Model:
        """The network of a run, loaded if it is not; what has been trained further is loaded anew."""
        kept = self._kept.get(name)
        if kept is None or kept.trusted_until < asyncio.get_running_loop().time():
            kept = self._current(name, *await asyncio.to_thread(self._on_disk, name))
        self._kept.move_to_end(name)
        try:
            return kept.loading.result() if kept.loading.done() else await self._awaited(kept.loading)
        except WeftError as error:
            self._kept.pop(name, None)
            why = brief(error).replace(str(kept.entry.path), kept.entry.name)
            raise Refusal(404, f"the network of {kept.entry.name} cannot be used: {why}") from error
        except Exception:
            if kept.loading.done():  # and has failed: who asks next may have more luck
                self._kept.pop(name, None)
            raise

    def _on_disk(self, name: str) -> tuple[Entry, int]:
        """The run of a name, and when its weights were written; folders may be many, so not on the loop."""
        entry = self.entry(name)
        return entry, (entry.path / WEIGHTS).stat().st_mtime_ns

    def _current(self, name: str, entry: Entry, changed: int) -> Kept:
        """What is kept under a name, or else is loaded from here on."""
        kept = self._kept.get(name)
        if kept is None or (kept.changed, kept.entry.path) != (changed, entry.path):
            self._require_room()
            kept = self._kept[name] = Kept(entry, changed, asyncio.create_task(self._load(entry)))
            self._let_go()
        kept.trusted_until = asyncio.get_running_loop().time() + TRUSTED
        return kept

    async def _awaited(self, loading: asyncio.Task[Model]) -> Model:
        """A network that others may be waiting for as well."""
        try:
            async with asyncio.timeout(self.config.timeout):
                return await asyncio.shield(loading)
        except TimeoutError:
            raise Refusal(503, "the network was not loaded in time; try again in a moment", 1) from None

    def entry(self, name: str) -> Entry:
        """The run of this name, if it holds a trained network."""
        entry = self.catalogue.run(name)
        if not is_trained(entry.path):
            raise Refusal(404, f"{entry.name} holds no trained network yet; wait until its training has ended")
        return entry

    def _require_room(self) -> None:
        under_way = sum(not kept.loading.done() for kept in self._kept.values())
        if under_way >= LOADED_AT_ONCE:
            raise Refusal(503, f"{under_way} networks are being loaded; try again in a moment", 1)

    async def _load(self, entry: Entry) -> Model:
        opened = ENGINES[self.config.engine]
        engine = await asyncio.get_running_loop().run_in_executor(self.loading, opened, entry.path)
        engine.card.objective()  # refuses a network that has learnt no answers
        inputs = Inputs(engine.takes, engine.transform, engine.columns, self.config.max_pixels)
        batcher = Batcher(
            Computing(engine, self.threads), self.computing, self.window, self.metrics.of_model(entry.name)
        )
        return Model(entry.name, engine, inputs, batcher, self.decoding)

    def _let_go(self) -> None:
        """Forget the networks that were not asked for longest; what they are computing still ends."""
        ended = [name for name, kept in self._kept.items() if kept.loading.done()]
        for name in ended[: max(0, len(self._kept) - self.config.max_models)]:
            self.metrics.forget(self._kept.pop(name).entry.name)
        self.metrics.loaded.set(len(self._kept))

    def close(self) -> None:
        for executor in (self.computing, self.loading, self.decoding, self.reading):
            executor.shutdown(wait=False, cancel_futures=True)


class Computing:
    """What computes a batch, on as many threads as it is worth.

    To share out a millisecond among threads gains little where they are free, and costs ten times as much where one of
    them has to wait for its core. So a batch gets one thread unless it would take long on it.
    """

    def __init__(self, engine: Engine, threads: int) -> None:
        self.engine, self.threads = engine, threads
        self.alone = math.inf  # seconds of an input on one thread: the least so far
        self.batches = 0  # made on one thread

    def __call__(self, raws: list[Any]) -> Outputs:
        few = self.batches < TIMED or len(raws) * self.alone < WORTH_SHARING
        torch.set_num_threads(1 if few else self.threads)  # of the thread that this runs in
        started = time.perf_counter()
        try:
            found = np.asarray(self.engine.outputs(raws, batch_size=len(raws)))
        except (MemoryError, RuntimeError) as error:
            if not machine.memory_is_short(error):
                raise
            raise Refusal(503, "the server has not enough memory for this now; send less, or later", 5) from error
        if few:
            self.batches += 1
            self.alone = min(self.alone, (time.perf_counter() - started) / len(raws))
        return found
