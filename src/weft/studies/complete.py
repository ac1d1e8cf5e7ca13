"""A study is done when every run of it is there: what is shown is shown in any case, and then said what it lacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft.errors import WorkFailed
from weft.studies.study import read_study, why_missing
from weft.training.folder import RunFolder

Run = dict[str, Any]  # as study.json lists it


def concluded(folder: Path, work: Callable[[], object], show: Callable[[Path], None]) -> None:
    """Do the work of a study and show what came of it; `WorkFailed` if a run is missing at the end."""
    failure: WorkFailed | None = None
    try:
        work()
    except WorkFailed as error:
        failure = error
    study = read_study(folder) or {"runs": []}
    if any(status(folder, run) == "finished" for run in study["runs"]):
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
        f"{len(lacking)} of {total} runs in {folder} failed or are missing, first {first['arm']}, seed "
        f"{first['seed']}: {why} (the same command runs again what has no record)"
    )


def status(folder: Path, run: Run) -> str:
    """How a run ended; empty while it has not."""
    return str((RunFolder(folder / "runs" / run["name"]).record() or {}).get("status", ""))
