"""A pool of workers that are tasks of Ray: one run is one task, with its cores, memory and accelerator declared.

A run goes on from its own folder, so plain re-execution, by Ray, is all that a lost process or node takes. The study
itself, what it has decided and which run comes next, stays with the process that drives it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, NodeDiedError, OutOfMemoryError, RayError, RayTaskError, TaskCancelledError

from weft import imported, machine
from weft.errors import WeftError, WorkFailed
from weft.studies.engine import tasks
from weft.studies.engine.cluster.connection import RETRIES
from weft.studies.engine.cluster.nodes import Node, able, offered
from weft.studies.engine.runner import ENDING, Pool, Say
from weft.studies.engine.worker import Answer, TaskFailed, Worker, WorkerDied, attempt, value_of
from weft.training.config import is_fitted
from weft.training.run.kinds import AnyConfig

LOOKING = 5.0  # seconds between two looks at the nodes while runs are under way
SPARE = 1.25  # of the memory that a run is predicted to take, declared to Ray, which kills what others need
UNIT = 1 << 20


class RayWorker(Worker):
    """One place for a run in the cluster, asked for one task at a time; each may be done on another node.

    What has been answered is forgotten at once: an answer is there before Ray has put its task away, and a task that is
    cancelled in between takes this process with it.
    """

    def __init__(self, pool: RayPool) -> None:
        self.pool = pool
        self.reference: Any = None

    def ask(self, task: Callable[..., Any], *arguments: Any, log: Path | None = None) -> None:
        whole = tuple(part.resolve() if isinstance(part, Path) else part for part in arguments)
        self.reference = self.pool.submit(task, whole, log and log.resolve())

    def answer(self, timeout: float | None = None) -> Any:
        asked, self.reference = self.reference, None
        try:
            return value_of(ray.get(asked, timeout=timeout))
        except GetTimeoutError as error:
            self.reference = asked
            raise TimeoutError from error
        except TaskCancelledError as error:
            raise TaskFailed("stopped before its first step", refused=True) from error
        except RayTaskError as error:  # not the task, which answers whatever it raises, but getting it to run
            last = str(error).strip().rpartition("\n")[2]
            raise TaskFailed(f"a node could not begin it: {last}", refused=False, details=str(error)) from error
        except RayError as error:
            raise WorkerDied(-machine.KILL, loss(error)) from error
        except KeyboardInterrupt:
            self.reference = asked
            raise

    def terminate(self) -> None:
        if self.reference is not None:
            with suppress(RayError, ValueError):
                ray.cancel(self.reference, force=False)  # Ctrl-C to the run: it saves at its next step

    def join(self, patience: float) -> None:
        """Wait for the task's end; one that takes too long is ended."""
        if self.reference is None:
            return
        try:
            ended, _ = ray.wait([self.reference], timeout=max(0.0, patience))
            if not ended:
                ray.cancel(self.reference, force=True)
        except (RayError, ValueError):
            return
        finally:
            self.reference = None


def loss(error: RayError) -> str:
    """Why a run was given up, after all of its retries."""
    tries = f"in each of {RETRIES + 1} tries"
    if isinstance(error, OutOfMemoryError):
        return f"its node ran out of memory {tries}; use a smaller --batch-size or network, or nodes with more memory"
    if isinstance(error, NodeDiedError):
        return f"its node was lost {tries}; the same command goes on once there are nodes"
    return f"its process was lost {tries} ({' '.join(str(error).split())[:160]})"


class RayPool(Pool):
    """As many places as the nodes have cores for; Ray decides where a task goes."""

    settled = True

    def __init__(self, nodes: list[Node], threads: int, gpu: bool, size: int | None, say: Say) -> None:
        self.nodes, self.threads, self.gpu, self.say = nodes, threads, gpu, say
        room = sum(int(min(node.cpus // threads, node.gpus if gpu else node.cpus)) for node in nodes)
        self.workers: list[Worker] = [RayWorker(self) for _ in range(min(room, size or room))]
        self.cores = len(self.workers) * threads
        self.memory: dict[str, int] = {}
        self.alive = {node.identity: node.name for node in nodes}
        free = ray.available_resources().get("CPU", 0.0)
        cores = sum(node.cpus for node in nodes)
        busy = f"; others use {cores - free:g} of its {cores:g} cores now" if free < cores else ""
        say(f"on Ray: {len(nodes)} nodes, {len(self.workers)} runs at a time on {threads} cores each{busy}")

    def __exit__(self, *_: object) -> None:
        try:
            deadline = time.monotonic() + ENDING
            for worker in self.workers:
                worker.terminate()
            for worker in self.workers:
                worker.join(deadline - time.monotonic())
        finally:
            ray.shutdown()

    def submit(self, task: Callable[..., Any], arguments: tuple[Any, ...], log: Path | None) -> Any:
        """Hand a task over to Ray; what it answers is fetched by the reference that is returned."""
        declared = self.memory.get(weight(arguments[0])) if task is tasks.run_one else None
        options = {
            "num_cpus": self.threads,
            "num_gpus": int(self.gpu),
            "memory": declared,
            "max_retries": RETRIES,
            "retry_exceptions": False,
            "scheduling_strategy": "SPREAD",
            "name": tasks.WORDS.get(task, "a run"),
        }
        return DO.options(**options).remote(task, arguments, log, str(Path.cwd()), ",".join(imported.trusted()))

    def ready(self, busy: Iterable[Worker], patience: float | None) -> list[Worker]:
        waiting = {worker.reference: worker for worker in busy if isinstance(worker, RayWorker)}
        until = None if patience is None else time.monotonic() + patience
        while True:
            rest = LOOKING if until is None else min(LOOKING, max(0.0, until - time.monotonic()))
            done, _ = ray.wait(list(waiting), timeout=rest)
            if done or (until is not None and time.monotonic() >= until):
                return [waiting[reference] for reference in done]
            self.look_at_nodes()

    def look_at_nodes(self) -> None:
        """Say which nodes are lost or new; without any that can do a run, waiting would not end."""
        now = offered()
        names = {node.identity: node.name for node in now}
        for identity in self.alive.keys() - names.keys():
            self.say(f"node {self.alive[identity]} is lost; its runs go on elsewhere from their last checkpoints")
            del self.alive[identity]
        try:
            able(now, self.threads, self.gpu)
        except WeftError as error:
            raise WorkFailed("all nodes that could do a run are lost; the same command goes on") from error

    def prepare(self, configs: Iterable[AnyConfig]) -> None:
        """Have the memory of every network predicted on a node; what no node can hold is refused."""
        wanted = {weight(config): config for config in configs if not is_fitted(config.model)}
        unknown = {key: config for key, config in wanted.items() if key not in self.memory}
        needs = self.each(tasks.memory_needed, [(config, self.threads) for config in unknown.values()])
        largest = max(node.memory for node in self.nodes)
        for (key, config), need in zip(unknown.items(), needs, strict=True):
            if isinstance(need, WeftError):  # the run itself will say so
                continue
            self.memory[key] = UNIT * int(SPARE * need / UNIT + 1)
            if self.memory[key] > largest:
                raise WeftError(
                    f"{config.model} needs about {need / 2**30:.1f} GiB and no node of the cluster offers more than "
                    f"{largest / 2**30:.1f}; use a smaller --batch-size, or nodes with more memory"
                )

    def one_after_the_other(self) -> None:
        """How many runs go side by side is the cluster's affair."""

    def replace(self, dead: Worker) -> None:
        dead.join(0.0)
        self.workers[self.workers.index(dead)] = RayWorker(self)


def weight(config: AnyConfig) -> str:
    """What decides the memory of a run."""
    network = json.dumps(config.network, sort_keys=True, default=str)
    optimisation = f"{config.optimisation.batch_size} {config.optimisation.opt}"
    start = getattr(config, "start", "")
    return f"{config.source} {start} {config.model} {network} {config.transform} {optimisation}"


def do(task: Callable[..., Any], arguments: tuple[Any, ...], log: Path | None, folder: str, trusted: str) -> Answer:
    """What a node does: the task, in the folder that the study was started from if the node has it."""
    with suppress(OSError):
        os.chdir(folder)
    if trusted:
        os.environ[imported.TRUSTED] = trusted
    console = os.dup(1), os.dup(2)
    try:
        return attempt(task, arguments, log, console)
    finally:
        for file in console:
            os.close(file)


DO = ray.remote(do)
