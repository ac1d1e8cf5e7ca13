"""One process at a time drives the study in a folder, and every end of it is an end with a sentence.

Whoever is second is refused: it would count the first one's runs as its own, or as failed. Being stopped keeps what is
finished. A study is done when every run of it is there: what there is is shown in any case, then what it lacks is said.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from weft.disk import LOCK, LOCKS, MARK, mark
from weft.errors import Interrupted, WeftError, WorkFailed
from weft.machine import Busy, Lock
from weft.studies.engine.study import read_study, why_missing
from weft.training.storage.run_folder import RunFolder

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
            if not is_begun(folder):
                for name in (*LOCKS, MARK):
                    (folder / name).unlink(missing_ok=True)
                for path in missing:
                    path.rmdir()
        lock.release()


def is_begun(folder: Path) -> bool:
    """Whether a folder holds anything of a study, or of others."""
    return folder.is_dir() and not {path.name for path in folder.iterdir()} <= {*LOCKS, MARK}


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
        if not is_begun(folder):
            raise Interrupted("interrupted before anything was finished; the same command begins again") from None
        raise Interrupted(f"interrupted; what is finished is kept in {folder}: the same command goes on") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def concluded(folder: Path, run: Callable[[], object], show: Callable[[Path], None]) -> None:
    """Run a study and show what came of it, also where it was interrupted; `WorkFailed` if a run is missing at the
    end."""
    failure: WeftError | None = None
    try:
        run()
    except (WorkFailed, Interrupted) as error:
        failure = error
    study = read_study(folder) or {"runs": []}
    if any(status(folder, each) == "finished" for each in study["runs"]):
        with suppress(*([WeftError] if failure else [])):  # how it ended is said first
            show(folder)
    if failure is not None:
        raise failure
    require_complete(folder)


def require_complete(folder: Path, good: tuple[str, ...] = ("finished",)) -> None:
    """Refuse to call a study done in which a run is missing, or has ended in any other way than the good ones."""
    study = read_study(folder) or {"runs": [], "trials": []}
    lacking = [run for run in study["runs"] if status(folder, run) not in good]
    lacking += [run for run in study["trials"] if not status(folder, run)]  # a rate at which it diverges is an answer
    if not lacking:
        return
    first = lacking[0]
    record = RunFolder(folder / "runs" / first["name"]).record()
    why = str(record.get("reason", "failed")) if record is not None else why_missing(folder, first["name"]).reason
    total = len(study["runs"]) + len(study["trials"])
    raise WorkFailed(
        f"{len(lacking)} of {total} runs in {folder} failed or are missing, first {first['candidate']}, seed "
        f"{first['seed']}: {why} (the same command runs again what has no record)"
    )


def status(folder: Path, run: dict[str, Any]) -> str:
    """How a run, as study.json lists it, ended; empty while it has not."""
    return str((RunFolder(folder / "runs" / run["name"]).record() or {}).get("status", ""))
