"""Runs the study: the rows one after the other, each in a process of its own, its record written as it comes.

What has a record is not measured again, so the same command goes on after a kill. Rows of one network share timings.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from weft.disk import write_json
from weft.errors import WeftError, WorkFailed
from weft.studies.engine import tasks
from weft.studies.engine.folder_lock import driving
from weft.studies.engine.runner import Pool, Say
from weft.studies.engine.study import read_stored
from weft.studies.experiments.speed_tables.measure_row import MeasuredRow
from weft.studies.experiments.speed_tables.published_rows import ROWS, SpeedRow

RECORDS = "rows"


def run_speeds(folder: Path, scale: str, repeats: int | None, command: str, say: Say) -> None:
    """Measure what has no record yet."""
    with driving(folder):
        found = {row.key: record for row in ROWS if (record := read_row(folder, row)) is not None}
        check_same(folder, found, scale)
        write_json(folder / "study.json", {"study": "e2", "scale": scale, "command": command})
        lacking = [row for row in ROWS if row.key not in found]
        say(f"{len(ROWS)} rows at the scale {scale}, {len(lacking)} to measure, on one core, in {folder}")
        (folder / RECORDS).mkdir(exist_ok=True)
        trouble: list[str] = []
        with Pool(1) as pool:
            for row in lacking:
                try:
                    found[row.key] = twin_of(row, found) or measured(pool, row, scale, repeats, say)
                    write_json(folder / RECORDS / f"{row.key}.json", asdict(found[row.key]))
                except WorkFailed as failure:
                    trouble.append(f"{row.title}: {failure}")
                    say(trouble[-1])
    if trouble:
        raise WorkFailed(f"{len(trouble)} of {len(ROWS)} rows were not measured, first {trouble[0]} (the same command "
                         "tries them again)")  # fmt: skip


def measured(pool: Pool, row: SpeedRow, scale: str, repeats: int | None, say: Say) -> MeasuredRow:
    """What a worker finds out about a row, after saying what it will need."""
    if scale != "smoke":
        pool.replace(pool.workers[0])  # what the row before has left in memory is not counted as this one's
    for sentence in pool.first(tasks.speed_plan, row, scale):
        say(sentence)
    return pool.first(tasks.speed_row, row, scale, repeats)


def twin_of(row: SpeedRow, found: dict[str, MeasuredRow]) -> MeasuredRow | None:
    """What was found about the same network in another row."""
    shape = (row.used(False), row.learning(False))
    for other in ROWS:
        if other.key in found and (other.used(False), other.learning(False)) == shape:
            return replace(found[other.key], name=row.title)
    return None


def check_same(folder: Path, found: dict[str, MeasuredRow], scale: str) -> None:
    """Refuse to mix two scales in one folder."""
    for record in found.values():
        if record.scale != scale:
            raise WeftError(f"{folder} holds rows of the scale {record.scale}, not {scale}; choose another --output")


def read_row(folder: Path, row: SpeedRow) -> MeasuredRow | None:
    """The record of a row, if there is one."""
    path = folder / RECORDS / f"{row.key}.json"
    return (
        read_stored(path, MeasuredRow, "remove it, and `weft study run e2` measures it again")
        if path.exists()
        else None
    )
