"""`weft runs`: the run folders below a folder, and what may be thrown away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tyro.conf import Positional

from weft.disk import find_below
from weft.errors import WeftError
from weft.training.storage.run_folder import (
    RunFolder,
    discard_checkpoints,
    discard_early,
    foreign_checkpoints,
    foreign_files,
)

WIDE = 110  # characters that all columns need
LEFT_OUT = ("source", "model", "seconds", "cost")  # of a narrower terminal: names of runs usually have them
What = Literal["checkpoints", "run"]
UNREADABLE = (WeftError, OSError)  # a folder of someone else's, or a damaged one


@dataclass(frozen=True)
class Arguments:
    """List runs: weft runs [FOLDER]; throw away what is no longer needed: weft runs prune [FOLDER]"""

    words: Positional[tuple[str, ...]] = ()
    """`prune`, if pruning is wanted, and the folder to look in (default: runs)."""
    apply: bool = False
    """With prune: delete. Without it prune only says what it would delete."""
    json: bool = False
    """Print JSON lines."""


def run(arguments: Arguments) -> int:
    """Print a table, or prune."""
    pruning = arguments.words[:1] == ("prune",)
    rest = arguments.words[1:] if pruning else arguments.words
    if len(rest) > 1:
        raise WeftError(f"give one folder, not {', '.join(rest)}")
    folder = Path(rest[0] if rest else "runs")
    if not folder.is_dir():
        raise WeftError(f"there is no folder {folder}; give the one that holds your runs")
    if pruning:
        return prune(folder, arguments.apply)
    rows = [summary(found) for found in find(folder)]
    show_json(rows) if arguments.json else show_table(rows)
    return 0


def find(folder: Path) -> Iterator[RunFolder]:
    """All run folders at or below `folder`, by name."""
    for path in find_below(folder, "run.yaml"):
        yield RunFolder(path.parent)


def summary(found: RunFolder) -> dict[str, Any]:
    """One line of the table; a folder that cannot be read has a status that says so."""
    row: dict[str, Any] = dict.fromkeys(("source", "model", "metric", "value", "steps", "seconds", "cost"))
    row = {"run": str(found.path), "status": "unreadable", **row}
    try:
        config, record = found.config(), found.sound_record()
        stated = {"source": config.source, "model": config.model, "status": found.status()}
        return row | stated | (results(record) if record is not None else {})
    except UNREADABLE as error:
        return row | {"metric": str(error)}


def results(record: dict[str, Any]) -> dict[str, Any]:
    """The columns of the table that a record fills."""
    metric = record["metric"]
    result = {"metric": metric, "value": record["metrics"][metric], "steps": record["steps"]}
    return result | {"seconds": record["wall_seconds"], "cost": record["cost"]}


def show_json(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        print(json.dumps(row))


def show_table(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from weft.terminal import console

    screen = console()
    titles = ["run", "status", "source", "model", "metric", "steps", "seconds", "cost"]
    shown = [title for title in titles if screen.width >= WIDE or title not in LEFT_OUT]
    table = Table(box=None)
    for title in shown:
        table.add_column(title, overflow="fold", ratio=1 if title == "run" else None)
    for row in rows:
        table.add_row(*(cell for title, cell in zip(titles, cells(row), strict=True) if title in shown))
    screen.print(table if rows else "no runs")


def cells(row: dict[str, Any]) -> list[str]:
    """A line of the table."""
    metric = row["metric"] or "" if row["value"] is None else f"{row['metric']} {row['value']:.4f}"
    numbers = [row["steps"] or "", f"{row['seconds']:.1f}", f"{row['cost']:.4f}"] if row["seconds"] else ["", "", ""]
    return [row["run"], row["status"], row["source"], row["model"], metric, *map(str, numbers)]


def prune(folder: Path, apply: bool) -> int:
    """Delete the checkpoints of finished runs (their networks stay) and runs that never began; others' files stay."""
    own = (RunFolder(path.parent) for path in sorted(folder.rglob("run.yaml")))  # nothing behind links is thrown away
    doomed = [found for run in own if (found := prunable(run)) is not None]
    freed = 0
    for path, what in doomed:
        size = size_of(path)
        freed += size
        print(f"{'deleting' if apply else 'would delete'} {path} ({what}, {size / 2**20:.1f} MiB)")
        for stranger in dispose(path, what) if apply else left_alone(path, what):
            print(f"  but not {stranger}, which weft did not write")
    advice = "" if apply or not doomed else "; add --apply to delete"
    print(f"{len(doomed)} folders, {freed / 2**20:.1f} MiB{advice}")
    return 0


def prunable(run: RunFolder) -> tuple[Path, What] | None:
    """What of a run is no longer needed; nothing of one that is under way or cannot be read."""
    try:
        status, begun = run.status(), run.plan() is not None
    except UNREADABLE:
        return None  # not ours to judge
    if status == "finished" and run.checkpoints.is_dir():
        return run.checkpoints, "checkpoints"
    if status == "stopped" and not begun:
        if found := foreign_files(run.path):
            print(f"leaving {run.path}, whose run never began: {found[0]} is not weft's")
            return None
        return run.path, "run"
    return None


def left_alone(path: Path, what: What) -> list[Path]:
    """What would stay of what is thrown away."""
    return foreign_checkpoints(path) if what == "checkpoints" else []


def dispose(path: Path, what: What) -> list[Path]:
    """Throw it away; returns what stays because it is someone else's."""
    if what == "checkpoints":
        return discard_checkpoints(path)
    try:
        lock = RunFolder(path).lock()
    except WeftError:
        return []  # it has begun in the meantime
    try:
        discard_early(path)
    finally:
        lock.release()
    return []


def size_of(path: Path) -> int:
    """Bytes of all files below a folder; a link counts for nothing."""
    return sum(file.lstat().st_size for file in path.rglob("*") if not file.is_symlink() and file.is_file())
