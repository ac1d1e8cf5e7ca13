"""What a table says of each run: read once from its record, and again only when its folder has changed.

A run without a record is looked at anew each time: it may be running. Damaged files make a row that says so.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft import machine
from weft.disk import LOCK, Damaged, brief, is_number, parse_object, read_bytes, validated
from weft.errors import WeftError
from weft.serve.catalogue import Catalogue, Entry
from weft.training.storage.metrics_log import Count, Number
from weft.training.storage.run_folder import RunFolder

PATIENCE = 0.5  # seconds that a page waits for records that were never read
RECENT = 60.0  # seconds since the last point of a curve, within which a run may be another machine's
TAIL = 1 << 16  # bytes at the end of a curve that hold its last points
CURVE = b'\n  "curve": ['  # where the long part of a record begins, which no table needs


@dataclass(frozen=True)
class RunRow:
    """One line of the table of runs; what is not known is None."""

    name: str
    path: Path
    state: str = "unread"
    """finished, failed, running, stopped, unreadable, or unread"""
    study: str = ""
    """the comparison or search that it belongs to"""
    kind: str = "train"
    source: str = ""
    model: str = ""
    seed: int | None = None
    metric: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    steps: int | None = None
    total: int | None = None
    """steps that were planned"""
    seconds: float | None = None
    left: float | None = None
    """seconds until a running one ends, at the pace it had so far"""
    parameters: int | None = None
    changed: float = 0.0
    """when something last came of it, seconds since 1970"""
    said: str = ""
    """why it failed, or cannot be read"""


@dataclass
class Asked:
    """What a table needs of a configuration."""

    source: str = ""
    model: str = ""
    seed: Count | None = None
    start: str | None = None


@dataclass
class Stored:
    """What a table needs of a record."""

    status: str
    metric: str
    metrics: dict[str, Any]
    config: Asked
    steps: Count
    wall_seconds: Number
    kind: str = "train"
    parameters: Count | None = None
    reason: str = ""
    plan: dict[str, Any] = field(default_factory=dict)


class RunIndex:
    """The rows of all runs of a catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._known: dict[Path, tuple[int, RunRow]] = {}
        self._asked: dict[Path, tuple[int, dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._unread: list[Entry] = []

    def rows(self, patience: float = PATIENCE) -> list[RunRow]:
        """A row a run; those that were not read in time are `unread`, and read in the background."""
        entries, studies = self.catalogue.entries(), self._studies()
        runs = [entry for entry in entries if entry.kind == "run"]
        held, until = machine.held_locks(), time.monotonic() + patience
        found = []
        for entry in runs:
            known = self._known.get(entry.path)
            if known is not None and known[0] == self.catalogue.changed(entry) != 0:
                found.append(known[1])
            elif time.monotonic() < until:
                found.append(self._read(entry, studies, held))
            else:
                found.append(known[1] if known else RunRow(entry.name, entry.path, study=studies.get(entry.path, "")))
                self._unread.append(entry)
        self._go_on(studies)
        return found

    def row(self, entry: Entry) -> RunRow:
        """The row of one run, as it is now."""
        return self._read(entry, self._studies(), machine.held_locks())

    def asked(self, entry: Entry) -> dict[str, Any]:
        """What run.yaml holds: kind, config and plan."""
        path = entry.path / "run.yaml"
        changed = path.stat().st_mtime_ns
        known = self._asked.get(entry.path)
        if known is None or known[0] != changed:
            known = self._asked[entry.path] = changed, RunFolder(entry.path).asked()
        return known[1]

    def _studies(self) -> dict[Path, str]:
        """The name of the comparison or search by the folder of a run in it."""
        names = {entry.path: entry.name for entry in self.catalogue.entries() if entry.kind != "run"}
        return Parents(names)

    def _read(self, entry: Entry, studies: dict[Path, str], held: set[int] | None) -> RunRow:
        stamp = self.catalogue.changed(entry)
        study = studies.get(entry.path, "")
        try:
            if (entry.path / "record.json").is_file():
                row = recorded(entry, study)
                self._known[entry.path] = stamp, row
                return row
            return self._unfinished(entry, study, held)
        except (WeftError, OSError) as error:
            return RunRow(entry.name, entry.path, "unreadable", study, said=brief(error))

    def _unfinished(self, entry: Entry, study: str, held: set[int] | None) -> RunRow:
        """A run without a record: what was asked, how far it is, and whether anybody works on it."""
        content = self.asked(entry)
        asked = validated(Asked, known_fields(Asked, content["config"]), entry.path / "run.yaml")
        plan = content.get("plan")
        total = plan.get("steps") if isinstance(plan, dict) else None
        last, changed = last_points(entry.path / "metrics.jsonl")
        running = is_held(entry.path, held, changed)
        steps, seconds = last.get("step"), last.get("seconds")
        left = (total - steps) * seconds / steps if running and total and steps and seconds else None
        return RunRow(
            entry.name, entry.path, "running" if running else "stopped", study, str(content.get("kind", "train")),
            asked.source, network_name(asked), asked.seed, "validation" if "validation_metric" in last else "",
            last.get("validation_metric"), steps=steps, total=total, seconds=seconds, left=left, changed=changed,
        )  # fmt: skip

    def _go_on(self, studies: dict[Path, str]) -> None:
        """Read in the background what there was no time for."""
        if not self._unread or not self._lock.acquire(blocking=False):
            return

        def work() -> None:
            try:
                while self._unread:
                    self._read(self._unread.pop(), studies, None)
            finally:
                self._lock.release()

        threading.Thread(target=work, name="run index", daemon=True).start()


class Parents(dict[Path, str]):
    """Names of folders, found by a folder below one of them: runs lie in `runs` or `trials` of their study."""

    def get(self, path: Path, usual: str = "") -> str:  # type: ignore[override]
        return super().get(path.parent.parent) or super().get(path.parent) or usual


def recorded(entry: Entry, study: str) -> RunRow:
    """The row of a run that has ended."""
    path = entry.path / "record.json"
    stored: Stored = validated(Stored, without_curve(path), path)
    value: Any = stored.metrics.get(stored.metric)
    ends = stored.metrics.get(f"{stored.metric}_interval")
    low, high = ends if isinstance(ends, list) and len(ends) == 2 and all(map(is_number, ends)) else (None, None)
    total = stored.plan.get("steps")
    return RunRow(
        entry.name, entry.path, stored.status, study, stored.kind, stored.config.source, network_name(stored.config),
        stored.config.seed, stored.metric, float(value) if is_number(value) else None, low, high, stored.steps,
        total if isinstance(total, int) else None, stored.wall_seconds, None, stored.parameters,
        path.stat().st_mtime, stored.reason,
    )  # fmt: skip


def without_curve(path: Path) -> dict[str, Any]:
    """A record but for its curve, which comes last and may be a hundred times as long as the rest."""
    content = read_bytes(path)
    head, found, _ = content.partition(CURVE)
    try:
        short = json.loads(head.rstrip().rstrip(b",") + b"}") if found else None
    except ValueError:
        short = None
    if isinstance(short, dict) and short.get("status") == "finished":
        return short
    return parse_object(content.decode("utf-8", errors="replace"), path)  # why it failed may stand behind the curve


def last_points(path: Path) -> tuple[dict[str, Any], float]:
    """The last known numbers of a curve by their names, and when the file was changed."""
    found: dict[str, Any] = {}
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL))
            lines = file.read(TAIL).splitlines()
        changed = path.stat().st_mtime
    except OSError:
        return found, path.parent.stat().st_mtime
    for line in reversed(lines):
        try:
            event = json.loads(line)
        except ValueError:  # the first and the last may be cut
            continue
        if isinstance(event, dict):
            found = {name: value for name, value in event.items() if is_number(value)} | found
        if "validation_metric" in found and "loss" in found:
            break
    return found, changed


def is_held(run: Path, held: set[int] | None, changed: float) -> bool:
    """Whether a process trains in the folder: this system knows, unless it is another one's."""
    lock = run / LOCK
    try:
        number = lock.stat().st_ino
    except OSError:
        return False
    if held is not None and number in held:
        return True
    if held is not None and time.time() - changed > RECENT:
        return False
    return RunFolder(run).is_busy()


def network_name(asked: Asked) -> str:
    """The network, or what it starts from."""
    return asked.model or Path(asked.start or "").name


def known_fields(kind: Any, values: Any) -> dict[str, Any]:
    """The values that a dataclass has fields for."""
    if not isinstance(values, dict):
        raise Damaged("its configuration is no mapping of names to values; restore run.yaml")
    return {name: value for name, value in values.items() if name in kind.__dataclass_fields__}
