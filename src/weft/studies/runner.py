"""Carries out the runs of a study, side by side on one thread each or one after the other, whichever is faster here.

Nothing that is finished is run again, a run that was interrupted goes on from its checkpoint, and a run that fails or
takes its process with it is written down while the others go on.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import wait
from typing import Any

from weft import machine
from weft.errors import WeftError
from weft.studies.arms import CLASSICAL
from weft.studies.study import Job, Study
from weft.studies.worker import TaskFailed, Worker, WorkerDied
from weft.training.kinds import AnyConfig

Say = Callable[[str], None]
SAVING = 60.0  # seconds that interrupted runs have to save


class Pool:
    """The worker processes of a study."""

    def __init__(self, size: int | None = None) -> None:
        self.cores = machine.cores()
        self.workers = [Worker() for _ in range(size or self.cores)]
        self.threads = 1

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.stop()

    def first(self, task: str, *arguments: Any) -> Any:
        """The answer of one worker, a refusal as the sentence that it is."""
        self.workers[0].ask(task, *arguments)
        return self.answers(task, self.workers[:1])[0]

    def answers(self, task: str, workers: list[Worker]) -> list[Any]:
        """What each was asked for; the first failure as a sentence, after all have answered."""
        found: list[Any] = []
        trouble: list[WeftError] = []
        for worker in workers:
            try:
                found.append(worker.answer())
            except TaskFailed as failure:
                trouble.append(WeftError(str(failure)))
            except WorkerDied as death:
                trouble.append(WeftError(f"{task} failed: {death}"))
        if trouble:
            raise trouble[0]
        return found

    def spread(self, task: str, arguments: list[Any]) -> None:
        """One task an argument, over all workers."""
        for first in range(0, len(arguments), len(self.workers)):
            busy = list(zip(self.workers, arguments[first : first + len(self.workers)], strict=False))
            for worker, argument in busy:
                worker.ask(task, argument)
            self.answers(task, [worker for worker, _ in busy])

    def one_after_the_other(self) -> None:
        """Give the whole machine to one worker."""
        for worker in self.workers[1:]:
            worker.stop()
        self.workers, self.threads = self.workers[:1], self.cores

    def replace(self, dead: Worker) -> None:
        with suppress(OSError):
            dead.stop()
        self.workers[self.workers.index(dead)] = Worker()


def choose_schedule(pool: Pool, configs: Iterable[AnyConfig], say: Say) -> None:
    """Keep as many workers as make the study fastest, by timing steps of two arms both ways on this machine."""
    pair = [config for config in configs if config.model not in CLASSICAL.values()][:2]
    if len(pool.workers) < 2 or not pair:
        pool.one_after_the_other()
        return
    together = timed_together(pool, [pair[number % len(pair)] for number in range(len(pool.workers))])
    alone = [pool.first("step_seconds", config, pool.cores) for config in pair]
    beside = sum(together) / len(together) / len(pool.workers)
    single = sum(alone) / len(alone)
    if beside > single:
        pool.one_after_the_other()
    way = f"{len(pool.workers)} side by side" if beside <= single else "one after the other"
    say(f"schedule: {way} (a step takes {1000 * beside:.1f} ms side by side, {1000 * single:.1f} ms alone)")


def timed_together(pool: Pool, configs: list[AnyConfig]) -> list[float]:
    """Seconds of a step of each, all workers busy at once on one thread each."""
    for worker in pool.workers:  # opening the data must not disturb the timing of those that have it open
        worker.ask("look", configs[0])
    pool.answers("look", pool.workers)
    for worker, config in zip(pool.workers, configs, strict=True):
        worker.ask("step_seconds", config, 1)
    return pool.answers("step_seconds", pool.workers)


def carry_out(study: Study, pool: Pool, jobs: list[Job], say: Say) -> None:
    """Do all jobs that are not done."""
    waiting = deque(job for job in jobs if not study.done(job))
    total, already = len(jobs), len(jobs) - len(waiting)
    if already:
        say(f"{already} of {total} runs are finished already")
    busy: dict[Worker, tuple[Job, float]] = {}
    finished = already
    try:
        while waiting or busy:
            for worker in pool.workers:
                if waiting and worker not in busy:
                    job = waiting.popleft()
                    begin(study, pool, worker, job)
                    busy[worker] = job, time.perf_counter()
            ready = wait([worker.connection for worker in busy])
            for worker in [worker for worker in busy if worker.connection in ready]:
                job, started = busy.pop(worker)
                told = conclude(study, pool, worker, job)
                finished += 1
                say(f"[{finished}/{total}] {job.arm}, seed {job.seed}: {told}, {time.perf_counter() - started:.1f} s")
    except KeyboardInterrupt:
        save_all(busy)
        raise WeftError(f"interrupted; {finished} of {total} runs are finished: the same command goes on") from None


def begin(study: Study, pool: Pool, worker: Worker, job: Job) -> None:
    config = study.placed(job)
    config = replace(config, execution=replace(config.execution, threads=pool.threads))
    known = study.known_plan(job, pool.threads)
    worker.ask("carry_out", config, study.run_folder(job).path, known, log=study.log(job))


def conclude(study: Study, pool: Pool, worker: Worker, job: Job) -> str:
    """Note how a run ended, in words."""
    try:
        status = worker.answer()
    except (TaskFailed, WorkerDied) as trouble:
        study.record_failure(job, str(trouble))
        if isinstance(trouble, WorkerDied):
            pool.replace(worker)
        return f"failed: {trouble} (see {study.log(job)})"
    if status == "interrupted":
        raise KeyboardInterrupt
    study.failure(job).unlink(missing_ok=True)
    record = study.run_folder(job).record() or {}
    if status == "failed":
        return f"failed: {record.get('reason', '')}"
    return f"{record['metric']} {record['metrics'][record['metric']]:.4f}"


def save_all(busy: Iterable[Worker]) -> None:
    """Have every run that is under way write a checkpoint."""
    deadline = time.monotonic() + SAVING
    for worker in busy:
        if worker.process.is_alive():
            worker.process.terminate()  # SIGTERM: the run saves at its next step
    for worker in busy:
        with suppress(TaskFailed, WorkerDied, TimeoutError):
            worker.answer(max(0.1, deadline - time.monotonic()))
