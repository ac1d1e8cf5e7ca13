"""Runs the jobs of a study, side by side on one thread each or one after the other, whichever is faster here.

Nothing that is finished is run again, a run that was interrupted goes on from its checkpoint, and a run that fails or
takes its process with it is written down while the others go on; where all fail alike, the study stops.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from multiprocessing.connection import wait
from typing import Any, NamedTuple, Protocol, TypeVar

from weft import machine
from weft.errors import Interrupted, WeftError, WorkFailed
from weft.studies.engine import tasks
from weft.studies.engine.shared_runs import take_over
from weft.studies.engine.study import Job, Study
from weft.studies.engine.worker import TaskFailed, Worker, WorkerDied
from weft.training.config import is_fitted
from weft.training.run.kinds import AnyConfig

T = TypeVar("T")
Say = Callable[[str], None]
SAVING = 60.0  # seconds that interrupted runs have to save
ENDING = 30.0  # seconds that workers have to end
FAILED_ALIKE = 3  # runs, and as many different candidates where there are so many, before a study is stopped


class Pool:
    """The worker processes of a study, on this machine; `place` opens one, here or elsewhere."""

    settled = False  # whether it is given how many runs go side by side, and on how many threads each

    @property
    def processor(self) -> str:
        """What runs are computed on; empty where that is of several kinds."""
        return machine.cpu_model()

    def __init__(self, size: int | None = None) -> None:
        self.cores = machine.cores()
        self.workers = [Worker() for _ in range(size or self.cores)]
        self.threads = 1

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        stop(self.workers)

    def warm(self) -> list[Worker]:
        """Those that have done something before; on a cluster a place for runs outlives its process."""
        return self.workers if self.settled else [worker for worker in self.workers if worker.warm]

    def first(self, task: Callable[..., T], *arguments: Any, within: float | None = None) -> T:
        """The answer of one worker, a refusal as the sentence that it is; it may have so many seconds at most."""
        self.workers[0].ask(task, *arguments)
        return self.answers(task, self.workers[:1], moment(within))[0]

    def everyone(self, task: Callable[..., T], *arguments: Any, within: float | None = None) -> T:
        """The same, done by every worker of this machine, so that each has opened then what it will read."""
        if self.settled:
            return self.first(task, *arguments, within=within)
        found = self.each(task, [arguments] * len(self.workers), within=within)[0]
        if isinstance(found, WeftError):
            raise found
        return found

    def answers(self, task: Callable[..., T], workers: list[Worker], until: float | None = None) -> list[T]:
        """What each was asked for; the first failure as a sentence, after all have answered."""
        found, trouble = self.collect(task, workers, until)
        if trouble:
            raise trouble[0]
        return found

    def collect(
        self, task: Callable[..., T], workers: list[Worker], until: float | None = None
    ) -> tuple[list[T], list[WeftError]]:
        """What those that could do it answer, and why the others could not; who has not `until` then is ended."""
        found: list[T] = []
        trouble: list[WeftError] = []
        for worker in list(workers):
            try:
                found.append(worker.answer(None if until is None else max(0.0, until - time.monotonic())))
            except TimeoutError:
                trouble.append(too_late(task))
                worker.join(0.0)
                self.replace(worker)
            except TaskFailed as failure:
                trouble.append(WeftError(str(failure)))
                trouble[-1].__cause__ = failure  # --debug shows where it happened
            except WorkerDied as death:
                trouble.append(WorkFailed(f"{tasks.WORDS[task]} failed: {death}"))
                self.replace(worker)
        return found, trouble

    def spread(self, task: Callable[[Any], Any], arguments: list[Any], within: float | None = None) -> list[WeftError]:
        """One task an argument, over all workers that need not load torch first, in so many seconds at most; returns
        why some could not be done."""
        answers = self.each(task, [(argument,) for argument in arguments], self.warm(), within)
        return [answer for answer in answers if isinstance(answer, WeftError)]

    def each(
        self,
        task: Callable[..., T],
        arguments: list[tuple[Any, ...]],
        workers: list[Worker] | None = None,
        within: float | None = None,
    ) -> list[T | WeftError]:
        """The answers to a task, one a tuple of arguments, with all workers busy, or with these; why, where there is
        none, after so many seconds at the latest."""
        found: list[T | WeftError] = []
        waiting, until = deque(arguments), moment(within)
        while waiting:
            if until is not None and time.monotonic() >= until:
                return found + [too_late(task) for _ in waiting]
            able = [worker for worker in workers or () if worker in self.workers] or self.workers  # others have died
            busy = [(worker, waiting.popleft()) for worker in able[: len(waiting)]]
            for worker, these in busy:
                worker.ask(task, *these)
            for worker, _ in busy:
                answers, trouble = self.collect(task, [worker], until)
                found += answers or trouble
        return found

    def ready(self, busy: Iterable[Worker], patience: float | None) -> list[Worker]:
        """Those that have answered, once one has; none after so many seconds."""
        waiting = {worker.connection: worker for worker in busy}
        return [waiting[connection] for connection in wait(list(waiting), patience)]  # type: ignore[index]

    def prepare(self, configs: Iterable[AnyConfig]) -> None:
        """Find out what runs need before the first one begins; here each finds that out for itself."""

    def one_after_the_other(self) -> None:
        """Give the whole machine to one worker."""
        stop(self.workers[1:])
        self.workers, self.threads = self.workers[:1], self.cores

    def replace(self, dead: Worker) -> Worker:
        """A new worker in the place of a dead one; last, as the others have the data open that it has not."""
        stop([dead])
        self.workers.remove(dead)
        self.workers.append(Worker())
        return self.workers[-1]


class TooLate(WeftError):
    """A worker had no more time to answer."""


def too_late(task: Callable[..., Any]) -> WeftError:
    """Why there is no answer where the time for one is over."""
    return TooLate(f"{tasks.WORDS[task]} takes longer than there is time for; give more --time")


def moment(within: float | None) -> float | None:
    """When so many seconds will be over, by the monotonic clock."""
    return None if within is None else time.monotonic() + within


def stop(workers: list[Worker]) -> None:
    """Let processes save what they are doing and end; none stays behind, not even when this is interrupted."""
    deadline = time.monotonic() + ENDING
    for worker in workers:
        worker.terminate()
    try:
        for worker in workers:
            worker.join(deadline - time.monotonic())
    except BaseException:
        for worker in workers:
            worker.join(0.0)
        raise


def choose_schedule(pool: Pool, configs: Iterable[AnyConfig], say: Say) -> None:
    """Keep as many workers as make the study fastest, by timing steps of two candidates both ways on this machine."""
    if pool.settled:
        return
    pair = [config for config in configs if not is_fitted(config.model)][:2]
    if len(pool.workers) < 2 or not pair:
        pool.one_after_the_other()
        return
    try:
        together = timed_together(pool, [pair[number % len(pair)] for number in range(len(pool.workers))])
        alone = [pool.first(tasks.step_seconds, config, pool.cores) for config in pair]
    except WorkFailed as failure:  # the runs will tell whether it was both at once, or each
        pool.one_after_the_other()
        say(f"schedule: one after the other ({failure})")
        return
    beside = sum(together) / len(together) / len(pool.workers)
    single = sum(alone) / len(alone)
    if beside > single:
        pool.one_after_the_other()
    way = f"{len(pool.workers)} side by side" if beside <= single else "one after the other"
    say(f"schedule: {way} (a step takes {1000 * beside:.1f} ms side by side, {1000 * single:.1f} ms alone)")


def timed_together(pool: Pool, configs: list[AnyConfig]) -> list[float]:
    """Seconds of a step of each, all workers busy at once on one thread each."""
    for worker in pool.workers:  # opening the data must not disturb the timing of those that have it open
        worker.ask(tasks.look, configs[0])
    pool.answers(tasks.look, pool.workers)
    for worker, config in zip(pool.workers, configs, strict=True):
        worker.ask(tasks.step_seconds, config, 1)
    return pool.answers(tasks.step_seconds, pool.workers)


class Admission(Protocol):
    """Who decides whether a run may still begin."""

    def admits(self, job: Job) -> bool:
        """Whether it would end in time."""

    def ended(self, job: Job, took: float) -> None:
        """Note the seconds that it took."""

    def meanwhile(self) -> None:
        """Called whenever all workers are busy that there is something for."""

    def patience(self, jobs: list[Job]) -> float:
        """Seconds until runs under way are saved and left, these being all that are not done."""

    def saving(self) -> float:
        """Seconds that they have for it."""


def run_jobs(study: Study, pool: Pool, jobs: list[Job], say: Say, admission: Admission | None = None) -> list[Job]:
    """Do all jobs that are not done, or those that are admitted; returns what was left undone for want of time.

    `WorkFailed` where all fail alike, `Interrupted` with the runs under way saved.
    """
    take_over(study, jobs, say)
    waiting = deque(job for job in jobs if not study.done(job))
    total, already = len(jobs), len(jobs) - len(waiting)
    if already:
        say(f"{already} of {total} runs are finished already")
    pool.prepare(study.placed(job) for job in waiting)
    busy: dict[Worker, tuple[Job, float]] = {}
    left: list[Job] = []
    ended = already
    alike = Alike(len({job.candidate for job in jobs}), any(study.finished(job) for job in jobs))
    held: set[str] = set()
    try:
        while waiting or busy:
            for worker in [worker for worker in pool.workers if worker not in busy]:
                while waiting and admission is not None and not admission.admits(waiting[0]):
                    left.append(waiting.popleft())
                if waiting:
                    job = waiting.popleft()
                    begin(study, pool, worker, job)
                    busy[worker] = job, time.perf_counter()
            if not busy:  # nothing more was admitted
                break
            if admission is not None:
                admission.meanwhile()
            under_way = [job for job, _ in busy.values()]
            ready = pool.ready(busy, admission.patience([*under_way, *waiting]) if admission else None)
            if not ready:
                say(f"time is up: {', '.join(job.candidate for job in under_way)} saved on the way")
                silent = save_all(busy, admission.saving() if admission else SAVING)
                for worker in [each for each in busy if each in silent or each.ended]:  # of SIGTERM after its answer
                    worker.join(0.0)
                    pool.replace(worker)
                return [*left, *(job for job in under_way if not study.done(job)), *waiting]
            for worker in ready:
                job, started = busy.pop(worker)
                end = end_of(study, pool, worker, job)
                if end is None:
                    waiting.append(job)
                    if job.name not in held:
                        say(f"another process trains in {study.run_folder(job).path}; waiting for it to end")
                    held.add(job.name)
                    continue
                ended += 1
                took = time.perf_counter() - started
                say(f"[{ended}/{total}] {job.candidate}, {job.which}: {end.sentence}, {took:.1f} s")
                if admission is not None and study.finished(job):
                    admission.ended(job, took)
                alike.note(job.candidate, end.cause, end.sentence)
    except KeyboardInterrupt:
        save_all(busy)
        raise Interrupted(
            f"interrupted; {ended} of {total} runs are finished, those under way are kept up to their last checkpoint: "
            "the same command goes on"
        ) from None
    return left


def begin(study: Study, pool: Pool, worker: Worker, job: Job) -> None:
    config = study.placed(job)
    config = replace(config, execution=replace(config.execution, threads=pool.threads))
    known = study.known_plan(job, pool.threads)
    worker.ask(tasks.run_one, config, study.run_folder(job).path, known, log=study.log(job))


class End(NamedTuple):
    """How a run ended, as a sentence; `cause` is the same for all that fail alike, empty for trouble of its own."""

    sentence: str
    cause: str = ""


def end_of(study: Study, pool: Pool, worker: Worker, job: Job) -> End | None:
    """Note how a run ended; None where another process has it."""
    try:
        status = worker.answer()
    except TaskFailed as failure:
        return failed(study, job, str(failure), failure.cause)
    except WorkerDied as death:
        pool.replace(worker)
        return failed(study, job, f"its process died while {study.run_folder(job).phase()}: {death.how}", death.cause)
    if status == "interrupted":
        raise KeyboardInterrupt
    if status == "held":
        return None
    study.failure(job).unlink(missing_ok=True)
    record = study.run_folder(job).record() or {}
    if status == "failed":
        return End(f"failed: {record.get('reason', '')}")  # it did not learn, where others may
    split = "validation " if record["config"].get("objective", {}).get("judged_on") == "validation" else ""
    return End(f"{split}{record['metric']} {record['metrics'][record['metric']]:.4f}")


def failed(study: Study, job: Job, reason: str, cause: str) -> End:
    """Write down why a run has no record."""
    study.record_failure(job, reason)
    return End(f"failed: {reason} (see {study.log(job)})", cause)


def save_all(busy: Iterable[Worker], patience: float = SAVING) -> list[Worker]:
    """Have every run that is under way write a checkpoint; interrupted again, end them as they are.

    Returns the workers that did not answer in time, or are dead.
    """
    deadline = time.monotonic() + patience
    silent: list[Worker] = []
    try:
        for worker in busy:
            worker.terminate()  # SIGTERM: the run saves at its next step
        for worker in busy:
            try:
                worker.answer(max(0.1, deadline - time.monotonic()))
            except TaskFailed:
                continue
            except (WorkerDied, TimeoutError):
                silent.append(worker)
    except KeyboardInterrupt:
        for worker in busy:
            worker.join(0.0)
        raise
    return silent


class Alike:
    """Notices that every candidate fails for one reason, which the candidates still to come would only repeat."""

    def __init__(self, candidates: int, any_finished: bool) -> None:
        self.candidates = min(FAILED_ALIKE, candidates)
        self.hopeful = any_finished
        self.failed: list[str] = []
        self.cause = ""

    def note(self, candidate: str, cause: str, sentence: str) -> None:
        """How a run ended: the cause of its failure, or nothing. Raises once there is no point in going on.

        A cause that depends on the candidate, such as a lack of memory, is given as nothing too. Sentences are for
        people: they name paths and numbers, which differ where the cause is one.
        """
        if not cause:
            self.hopeful = True
        if self.failed and cause != self.cause:
            self.hopeful = True
        self.cause = cause
        self.failed.append(candidate)
        if not self.hopeful and len(self.failed) >= FAILED_ALIKE and len(set(self.failed)) >= self.candidates:
            names = ", ".join(dict.fromkeys(self.failed))
            count = len(self.failed)
            raise WorkFailed(f"stopped: the first {count} runs ({names}) all failed alike; the last one {sentence}")
