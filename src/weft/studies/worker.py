"""A process that does tasks for a study, one after the other; if it dies, only its task is lost.

Torch is imported once a worker and data opened once, so a run costs little more than its steps.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from weft.errors import WeftError


class WorkerDied(Exception):
    """The process ended without an answer."""


class TaskFailed(Exception):
    """A task raised; `refused` tells a sentence for the user from a fault of ours."""

    def __init__(self, message: str, refused: bool) -> None:
        super().__init__(message)
        self.refused = refused


class Worker:
    """One process, asked for one task at a time."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork of a process with OpenMP threads would hang
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def ask(self, task: str, *arguments: Any, log: Path | None = None) -> None:
        """Send a task; what it prints goes to the file `log`."""
        with suppress(BrokenPipeError):  # a dead worker is noticed when its answer is read
            self.connection.send((task, arguments, log))

    def answer(self, timeout: float | None = None) -> Any:
        """The result of the task, or TaskFailed, or WorkerDied."""
        try:
            if not self.connection.poll(timeout):
                raise TimeoutError
            kind, value = self.connection.recv()
        except (EOFError, ConnectionResetError) as error:
            self.process.join()
            code = self.process.exitcode or 0
            raise WorkerDied(f"its process died ({death(code)})") from error
        if kind == "done":
            return value
        raise TaskFailed(value, refused=kind == "refused")

    def call(self, task: str, *arguments: Any, log: Path | None = None) -> Any:
        """Ask and wait."""
        self.ask(task, *arguments, log=log)
        return self.answer()

    def stop(self) -> None:
        """Let the process save what it is doing and end."""
        self.connection.close()
        if self.process.is_alive():
            self.process.terminate()
        self.process.join(30)
        if self.process.is_alive():
            self.process.kill()


def death(code: int) -> str:
    if code == -signal.SIGKILL:
        return "killed; was memory short?"
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def serve(connection: Connection) -> None:
    """The worker's loop: ends when the study closes its end."""
    die_with_parent()
    console = os.dup(1), os.dup(2)
    try:
        from weft.studies import tasks

        while True:
            task, arguments, log = connection.recv()
            connection.send(attempt(getattr(tasks, task), arguments, log, console))
    except (EOFError, KeyboardInterrupt, BrokenPipeError):
        return


def attempt(function: Any, arguments: tuple[Any, ...], log: Path | None, console: tuple[int, int]) -> tuple[str, Any]:
    """Call a task with its output in the log; whatever it raises becomes an answer."""
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
    try:
        return "done", function(*arguments)
    except WeftError as error:
        print(error, file=sys.stderr)
        return "refused", str(error)
    except Exception as error:
        traceback.print_exc()
        return "failed", f"{type(error).__name__}: {error}"
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(console[0], 1)
        os.dup2(console[1], 2)


def die_with_parent() -> None:
    """On Linux, SIGTERM when the study is killed: a run then saves and frees its folder for the study's next start."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
