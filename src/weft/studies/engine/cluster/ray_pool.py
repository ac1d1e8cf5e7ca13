"""A pool of workers that are tasks of Ray: one run is one task, with its cores, memory and accelerator declared.

A run goes on from its own folder, so plain re-execution, by Ray, is all that a lost process or node takes. The study
itself, what it has decided and which run comes next, stays with the process that drives it.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, NodeDiedError, OutOfMemoryError, RayError, RayTaskError, TaskCancelledError

from weft import __version__, imported, machine
from weft.errors import WeftError, WorkFailed
from weft.studies.engine import tasks
from weft.studies.engine.cluster.connection import RETRIES
from weft.studies.engine.cluster.nodes import MARK, Needs, Node, Report, able, examined, offered, own_code
from weft.studies.engine.runner import ENDING, Pool, Say
from weft.studies.engine.worker import Answer, TaskFailed, Worker, WorkerDied, attempt, value_of
from weft.terminal import brief_list, how_many
from weft.training.config import is_fitted
from weft.training.run.kinds import AnyConfig

LOOKING = 5.0  # seconds between two looks at the nodes while runs are under way
SPARE = 1.25  # of the memory that a run is predicted to take, declared to Ray, which kills what others need
UNIT = 1 << 20
UNFIT = "unfit"  # the kind of an answer: the node cannot do any run of this study


class RayWorker(Worker):
    """One place for a run in the cluster, asked for one task at a time; each may be done on another node.

    What has been answered is forgotten at once: an answer is there before Ray has put its task away, and a task that is
    cancelled in between takes this process with it.
    """

    def __init__(self, pool: RayPool) -> None:
        self.pool = pool
        self.reference: Any = None
        self.declared = 0  # bytes of the task under way

    def ask(self, task: Callable[..., Any], *arguments: Any, log: Path | None = None) -> None:
        whole = tuple(part.resolve() if isinstance(part, Path) else part for part in arguments)
        self.declared = self.pool.declared(task, whole)
        self.reference = self.pool.submit(task, whole, log and log.resolve())

    def answer(self, timeout: float | None = None) -> Any:
        if timeout is None:
            self.pool.ready([self], None)  # which looks at the nodes meanwhile: there may be none left
        asked, self.reference = self.reference, None
        try:
            return fit_value(ray.get(asked, timeout=timeout))
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

    @property
    def ended(self) -> bool:
        return False  # a task ends, its place on the cluster does not

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


def fit_value(answer: Answer) -> Any:
    """What a task returned; a node that can do none ends the study, since it would get the next run as well."""
    if answer[0] == UNFIT:
        raise WorkFailed(f"{answer[1]} (the same command goes on)")
    return value_of(answer)


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

    def __init__(self, needs: Needs, nodes: dict[Node, Report], size: int | None, say: Say) -> None:
        self.needs, self.nodes, self.say = needs, dict(nodes), say
        self.threads, self.gpu = needs.threads, needs.gpu
        room = sum(int(min(node.cpus // self.threads, node.gpus if self.gpu else node.cpus)) for node in nodes)
        self.workers: list[Worker] = [RayWorker(self) for _ in range(min(room, size or room))]
        self.cores = len(self.workers) * self.threads
        self.memory: dict[str, int] = {}
        self.looked = time.monotonic()
        self.mark = made_mark(needs.folder.resolve())
        free = ray.available_resources().get("CPU", 0.0)
        cores = sum(node.cpus for node in nodes)
        busy = f"; others use {cores - free:g} of its {cores:g} cores now" if free < cores else ""
        runs, each = how_many(len(self.workers), "run"), how_many(self.threads, "core")
        say(f"on Ray: {how_many(len(nodes), 'node')}, {runs} at a time on {each} each{busy}")

    @property
    def processor(self) -> str:
        kinds = {report.processor for report in self.nodes.values()}
        return kinds.pop() if len(kinds) == 1 else ""

    def __exit__(self, *_: object) -> None:
        try:
            deadline = time.monotonic() + ENDING
            for worker in self.workers:
                worker.terminate()
            for worker in self.workers:
                worker.join(deadline - time.monotonic())
        finally:
            with suppress(OSError):
                self.mark.unlink()
            ray.shutdown()

    def submit(self, task: Callable[..., Any], arguments: tuple[Any, ...], log: Path | None) -> Any:
        """Hand a task over to Ray; what it answers is fetched by the reference that is returned."""
        options = {
            "num_cpus": self.threads,
            "num_gpus": int(self.gpu),
            "memory": self.declared(task, arguments) or None,
            "max_retries": RETRIES,
            "retry_exceptions": False,
            "scheduling_strategy": "SPREAD",
            "name": tasks.WORDS.get(task, "a run"),
        }
        around = str(Path.cwd()), ",".join(imported.trusted()), own_code(), str(self.mark)
        return (DO_ONCE if self.gpu else DO).options(**options).remote(task, arguments, log, *around)

    def declared(self, task: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
        """Bytes that Ray is told a task will take; 0 where nothing was predicted."""
        return self.memory.get(weight(arguments[0]), 0) if task is tasks.run_one else 0

    def ready(self, busy: Iterable[Worker], patience: float | None) -> list[Worker]:
        waiting = {worker.reference: worker for worker in busy if isinstance(worker, RayWorker)}
        until = None if patience is None else time.monotonic() + patience
        while True:
            rest = LOOKING if until is None else min(LOOKING, max(0.0, until - time.monotonic()))
            done, _ = ray.wait(list(waiting), timeout=rest)
            if time.monotonic() - self.looked >= LOOKING:  # also for those who ask again and again, for a moment each
                self.looked = time.monotonic()
                self.look_at_nodes()
            if done or (until is not None and time.monotonic() >= until):
                return [waiting[reference] for reference in done]

    def look_at_nodes(self) -> None:
        """Say which nodes are lost, and examine those that are new; without any that can do a run, waiting would not
        end."""
        now = offered()
        there = {node.identity for node in now}
        for node in [node for node in self.nodes if node.identity not in there]:
            self.say(f"node {node.name} is lost; its runs go on elsewhere from their last checkpoints")
            del self.nodes[node]
        try:
            fit = able(now, self.threads, self.gpu)
            able(now, self.threads, self.gpu, max((each.declared for each in self.under_way()), default=0))
        except WeftError as error:
            raise WorkFailed(
                f"all nodes that could do a run are lost: {error}; the same command goes on once there are such nodes"
            ) from error
        known = {node.identity for node in self.nodes}
        self.admit([node for node in fit if node.identity not in known])

    def under_way(self) -> list[RayWorker]:
        """Those whose tasks Ray has."""
        return [one for one in self.workers if isinstance(one, RayWorker) and one.reference is not None]

    def admit(self, new: list[Node]) -> None:
        """Ask nodes that have joined what all were asked at the start: Ray gives them runs like any other."""
        if not new:
            return
        try:
            self.nodes |= examined(new, self.needs, self.nodes.values())
        except WeftError as error:
            there = {node.identity for node in offered()}
            if all(node.identity in there for node in new):  # else one is gone again, and the others are asked anew
                raise WorkFailed(f"of the nodes that have joined: {error} (the same command goes on)") from error
        else:
            self.say(f"{brief_list([node.name for node in new])} joined the cluster")

    def prepare(self, configs: Iterable[AnyConfig]) -> None:
        """Have the memory of every network predicted on a node, by those that are idle; what no node can hold is
        refused."""
        wanted = {weight(config): config for config in configs if not is_fitted(config.model)}
        unknown = {key: config for key, config in wanted.items() if key not in self.memory}
        busy = self.under_way()
        idle = [worker for worker in self.workers if worker not in busy]
        needs = self.each(tasks.memory_needed, [(config, self.threads) for config in unknown.values()], idle)
        largest = max((node.memory for node in self.nodes), default=0.0)
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

    def replace(self, dead: Worker) -> Worker:
        """A place for a run outlives its process."""
        dead.join(0.0)
        return dead


def weight(config: AnyConfig) -> str:
    """What decides the memory of a run."""
    network = json.dumps(config.network, sort_keys=True, default=str)
    optimisation = f"{config.optimisation.batch_size} {config.optimisation.optimiser}"
    start = getattr(config, "start", "")
    return f"{config.source} {start} {config.model} {network} {config.transform} {optimisation}"


def made_mark(folder: Path) -> Path:
    """A file by which nodes know that they see the study's folder; what a killed study left is removed."""
    for path in folder.glob(f"{MARK}*"):
        with suppress(OSError):
            path.unlink()
    mark = folder / f"{MARK}{uuid.uuid4().hex}"
    mark.write_text("weft")
    return mark


def do(
    task: Callable[..., Any],
    arguments: tuple[Any, ...],
    log: Path | None,
    folder: str,
    trusted: str,
    code: str,
    mark: str,
) -> Answer:
    """What a node does: the task, in the folder that the study was started from if the node has it."""
    if trouble := unfit(code, mark):
        return UNFIT, trouble, "", ""
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


def unfit(code: str, mark: str) -> str:
    """Why this node can do no run of the study, as a sentence: one that has just joined gets runs before it is asked.

    `code` is the digest of weft's files where the study is driven, `mark` a file in the study's folder.
    """
    here = socket.gethostname()
    if code != own_code():
        return f"weft {__version__} on {here} has other files than where the study is driven; install the same on both"
    if not Path(mark).is_file():
        return f"{here} does not see {Path(mark).parent}; choose an --output on a file system that all nodes share"
    return ""


DO = ray.remote(do)  # processes stay for the next run: to import torch takes seconds
DO_ONCE = ray.remote(max_calls=1)(do)  # a process that stays keeps its context on the GPU, and memory with it
