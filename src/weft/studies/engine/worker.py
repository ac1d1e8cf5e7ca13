"""A process that does tasks for a study, one after the other; if it dies, only its task is lost.

Torch is imported once a worker and data opened once, so a run costs little more than its steps. A worker leaves Ctrl-C
and a closed terminal to the study, which asks it by SIGTERM to save; one whose study has died ends within a second.
"""

from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeVar

from weft import disk, machine
from weft.errors import WeftError

T = TypeVar("T")
Answer = tuple[str, Any, str, str]  # kind, value, details, cause

STOPS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
PATIENCE = 0.4  # seconds that a run has to save once its study is dead; noticing and ending take their time as well
WRITING = 20.0  # seconds that a checkpoint has which is being written at that moment


class WorkerDied(Exception):
    """The process ended without an answer. `cause` is the same for all that die alike; others may need less memory."""

    def __init__(self, code: int, how: str = "") -> None:
        self.how = how or machine.death(code)
        super().__init__(f"its process died: {self.how}")
        self.code = code
        self.cause = "" if code == -machine.KILL else self.how


class TaskFailed(Exception):
    """A task raised; `refused` tells a sentence for the user from a fault of ours, whose traceback is in the notes.

    `cause` is the same for all tasks that fail alike, whatever their sentences name; see `cause_of`.
    """

    def __init__(self, message: str, refused: bool, details: str = "", cause: str = "") -> None:
        super().__init__(message)
        self.refused, self.cause = refused, cause
        if details:
            self.add_note(details)


class Worker:
    """One process, asked for one task at a time."""

    warm = False  # whether it has answered before: then it has torch loaded, and its data open

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork of a process with OpenMP threads would hang
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        with safe_path(), undisturbed(), main_hidden():
            self.process.start()
        theirs.close()

    def ask(self, task: Callable[..., Any], *arguments: Any, log: Path | None = None) -> None:
        """Send a task, a function that its name imports; what it prints goes to the file `log`."""
        with suppress(BrokenPipeError):  # a dead worker is noticed when its answer is read
            self.connection.send((task, arguments, log))

    def answer(self, timeout: float | None = None) -> Any:
        """The result of the task, or TaskFailed, or WorkerDied."""
        try:
            if not self.connection.poll(timeout):
                raise TimeoutError
            found = self.connection.recv()
            self.warm = True
            return value_of(found)
        except (EOFError, ConnectionResetError) as error:
            self.process.join()
            raise WorkerDied(self.process.exitcode or 0) from error

    def call(self, task: Callable[..., T], *arguments: Any, log: Path | None = None) -> T:
        """Ask and wait."""
        self.ask(task, *arguments, log=log)
        found: T = self.answer()
        return found

    def terminate(self) -> None:
        """Ask the process to save what it is doing and to end."""
        with suppress(OSError):
            self.process.terminate()

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return not self.process.is_alive()

    def join(self, patience: float) -> None:
        """Wait for the end of the process; one that takes too long, or an impatient user, has it killed."""
        try:
            self.process.join(max(0.0, patience))
        finally:
            if self.process.is_alive():
                self.process.kill()
            self.connection.close()


def value_of(answer: Answer) -> Any:
    """What a task returned, or TaskFailed."""
    kind, value, details, cause = answer
    if kind == "done":
        return value
    raise TaskFailed(value, kind == "refused", details, cause)


@contextmanager
def safe_path() -> Iterator[None]:
    """Start a process that does not look for the modules that it begins with in the current folder, beside the data.

    Later it has the path of this process.
    """
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


@contextmanager
def undisturbed() -> Iterator[None]:
    """Start a process whole: Ctrl-C and its like are held back until it has begun, and it begins deaf to them.

    A process that is interrupted while it is being started would print a traceback. The mask is inherited; `serve`
    listens to SIGTERM again, and never to what a terminal sends to all of its processes at once.
    """
    came: list[int] = []
    kept: dict[int, Any] = {}
    with suppress(ValueError):  # not the main thread, where no handler of Python runs
        for number in STOPS:
            if signal.getsignal(number) != signal.SIG_IGN:
                kept[number] = signal.signal(number, lambda number, _: came.append(number))
    if hasattr(signal, "pthread_sigmask"):
        start_tracker()  # which would take away the mask if it were started below it
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        for number, handler in kept.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


@contextmanager
def main_hidden() -> Iterator[None]:
    """Start a process that does not import the script it is started from: `serve` needs nothing of it.

    multiprocessing would import it, and a script that is not guarded by `if __name__ == "__main__"` would begin anew.
    """
    script = sys.modules["__main__"]
    kept = {name: getattr(script, name) for name in ("__spec__", "__file__") if hasattr(script, name)}
    script.__spec__ = None
    with suppress(AttributeError):
        del script.__file__
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(script, name, value)


def start_tracker() -> None:
    """Start multiprocessing's own helper, which clears away what a killed worker left, and need not tell the user."""
    sys.warnoptions.append("ignore::UserWarning:multiprocessing.resource_tracker")  # handed on to its command line
    try:
        resource_tracker.ensure_running()
    finally:
        sys.warnoptions.pop()


def serve(connection: Connection) -> None:
    """The worker's loop: ends when the study closes its end."""
    listen()
    console = os.dup(1), os.dup(2)
    try:
        import weft.studies.engine.run_one  # noqa: F401  # torch, while the study still reads what was asked

        gc.freeze()  # what was imported stays: each run looks for garbage, which would go through all of it
        while True:
            task, arguments, log = connection.recv()
            connection.send(attempt(task, arguments, log, console))
    except (EOFError, KeyboardInterrupt, OSError):  # the study has closed its end, or is gone
        os._exit(0)  # taking torch apart would take seconds, and nothing is left to be written


def listen() -> None:
    """Heed the study alone: its SIGTERM, and its death."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    machine.ends_with_parent()
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    threading.Thread(target=end_with_study, daemon=True).start()


def end_with_study() -> None:
    """Once the study is dead, have the run save at its next step; if it takes too long, end without it.

    A run that is ended so loses the steps since its last checkpoint, and frees its folder for the study's next start.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    signal.raise_signal(signal.SIGTERM)
    time.sleep(PATIENCE)
    until = time.monotonic() + WRITING
    while disk.writing() and time.monotonic() < until:
        time.sleep(0.01)
    os._exit(128 + signal.SIGTERM)


def attempt(
    function: Callable[..., Any], arguments: tuple[Any, ...], log: Path | None, console: tuple[int, int]
) -> Answer:
    """Call a task with its output in the log; whatever it raises becomes an answer: kind, value, details, cause."""
    try:
        if log is not None:
            redirect(log)
        return "done", function(*arguments), "", ""
    except WeftError as error:
        if log is not None:  # else the study alone says it
            print(error, file=sys.stderr)
        return "refused", str(error), "", cause_of(error)
    except Exception as error:
        if log is not None:
            traceback.print_exc()
        return "failed", f"{type(error).__name__}: {error}", traceback.format_exc(), cause_of(error)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(console[0], 1)
        os.dup2(console[1], 2)


def cause_of(error: BaseException) -> str:
    """What others who meet the same trouble have in common: the system's name of it, or the line that raises it.

    Empty where memory is short, which others may need less of.
    """
    chain = [error]
    while (deeper := chain[-1].__cause__) is not None:
        chain.append(deeper)
    if any(map(machine.memory_is_short, chain)):
        return ""
    if codes := [found.errno for found in chain if isinstance(found, OSError) and found.errno is not None]:
        return errno.errorcode.get(codes[-1], str(codes[-1]))
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    return f"{type(error).__name__} at {frame.f_code.co_filename}:{line}"


def redirect(log: Path) -> None:
    """Let all that this process prints, compiled code included, go to a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with machine.open_own(log) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
