"""One process at a time drives the study in a folder, and being stopped is an end with a sentence.

Whoever is second is refused: it would count the first one's runs as its own, or as failed.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from weft.errors import Interrupted, WeftError
from weft.machine import Busy, Lock
from weft.ownership import LOCK, MARK, mark

GRACE = 1.0  # seconds for one that is about to end


@contextmanager
def driving(folder: Path) -> Iterator[None]:
    """Hold the folder of a study; Ctrl-C, SIGTERM and a closed terminal end with what is finished kept."""
    with stoppable(folder), held(folder):
        yield


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Refuse a folder that another process drives. Where nothing comes of it, nothing is left behind."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = Lock(folder / LOCK).acquire(GRACE)
        if folder in missing:
            mark(folder)  # before the source is opened, which may lie around it
    except Busy as error:
        raise WeftError(
            f"another process is at work in {folder}; wait for it or stop it, or choose another --output"
        ) from error
    except OSError as error:
        raise WeftError(f"cannot write to {folder}: {error.strerror}; choose another --output") from error
    try:
        yield
    finally:
        with suppress(OSError):
            if {path.name for path in folder.iterdir()} <= {LOCK, MARK}:
                for name in (LOCK, MARK):
                    (folder / name).unlink(missing_ok=True)
                for path in missing:
                    path.rmdir()
        lock.release()


@contextmanager
def stoppable(folder: Path) -> Iterator[None]:
    """What would end the process at once interrupts it instead, so that runs are saved and no worker stays behind."""
    before: dict[int, Any] = {}
    with suppress(ValueError):  # not the main thread: there whoever owns it handles signals
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores SIGHUP
                before[number] = signal.signal(number, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; what is finished is kept in {folder}: the same command goes on") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
