"""The time that workers have had in a study's folder, over all sessions, and the share of it that went into training:
the rest is start-up, measuring, testing and waiting, which further runs take too.

It is noted every few seconds in worker_time.json, so that a session counts that is under way, interrupted or killed.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from weft.disk import Damaged, write_json
from weft.errors import WeftError
from weft.studies.engine.study import read_stored
from weft.training.storage.run_folder import RunFolder

FILE = "worker_time.json"
NOTED = 5.0  # seconds between notes


@dataclass(frozen=True)
class WorkerTime:
    """The shape of worker_time.json: seconds of all sessions, each times its workers."""

    seconds: float


def worker_seconds(folder: Path) -> float:
    """Seconds of all workers in all sessions, as they were noted last."""
    with suppress(Damaged):
        return read_stored(folder / FILE, WorkerTime, "").seconds if (folder / FILE).is_file() else 0.0
    return 0.0


def trained_share(folder: Path) -> float | None:
    """Share of the workers' time that went into training, None where that is not known; runs that were taken over from
    elsewhere, which have no log here, took none of it."""
    spent, trained = worker_seconds(folder), 0.0
    for path in folder.glob("runs/*/record.json"):
        with suppress(WeftError):  # a damaged one is told with the results
            if (folder / "logs" / f"{path.parent.name}.txt").is_file():
                trained += (RunFolder(path.parent).sound_record() or {}).get("wall_seconds", 0.0)
    return min(1.0, trained / spent) if spent > 0 and trained > 0 and math.isfinite(trained) else None


@contextmanager
def noting_worker_time(folder: Path, began: float, workers: Callable[[], int]) -> Iterator[None]:
    """Note again and again the time of a session that `began` then (perf_counter), once there are runs in the folder;
    its workers may become fewer."""
    spent, last = worker_seconds(folder), began

    def note() -> None:
        nonlocal spent, last
        now = time.perf_counter()
        spent, last = spent + (now - last) * workers(), now
        if (folder / "runs").is_dir():
            with suppress(OSError, WeftError):
                write_json(folder / FILE, asdict(WorkerTime(round(spent, 1))))

    try:
        with noting(note):
            yield
    finally:
        note()


@contextmanager
def noting(note: Callable[[], None]) -> Iterator[None]:
    """Note something every few seconds, in a thread beside what is done meanwhile."""
    ended = threading.Event()

    def again() -> None:
        while not ended.wait(NOTED):
            note()

    beside = threading.Thread(target=again, daemon=True)
    beside.start()
    try:
        yield
    finally:
        ended.set()
        beside.join()
