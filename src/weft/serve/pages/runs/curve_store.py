"""Curves from metrics.jsonl: each file is read on from where it was read to, and kept as columns of numbers.

A drawn line has a few hundred points: of each stretch the lowest and the highest, so that no spike is lost.
"""

from __future__ import annotations

import json
import math
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.training.storage.metrics_log import LONGEST

KEPT = 200  # curves in memory
MOST = 1_000_000  # points of a curve that are kept
POINTS = 6000  # of all lines of a chart together
FEWEST, FINEST = 100, 2000  # points of one line

Line = tuple[NDArray[np.float64], NDArray[np.float64]]  # x and y, of one length
SERIES = {
    "loss": ("train", "loss"),
    "validation_loss": ("evaluation", "validation_loss"),
    "validation_metric": ("evaluation", "validation_metric"),
    "lr": ("train", "lr"),
    "gradient_norm": ("train", "gradient_norm"),
}
"""What can be drawn: the kind of event that has it, and its name there."""
ACROSS = ("step", "epoch", "seconds")


@dataclass
class Curve:
    """What one metrics.jsonl holds, as far as it was read."""

    number: int = 0
    """inode: another one means that it was written anew"""
    offset: int = 0
    """bytes that were read, up to the end of a line"""
    rows: dict[str, list[tuple[float, float, float, float]]] = field(default_factory=dict)
    """of each series step, epoch, seconds and value"""
    rollbacks: list[dict[str, Any]] = field(default_factory=list)

    def line(self, name: str, across: str = "step") -> Line:
        """One series: (n,) of x and of y."""
        found = np.array(self.rows.get(name, ()), dtype=np.float64).reshape(-1, 4)
        x, y = found[:, ACROSS.index(across)], found[:, 3]
        known = np.isfinite(x) & np.isfinite(y)
        return x[known], y[known]

    def last(self) -> dict[str, float]:
        """The last value of each series."""
        return {name: rows[-1][3] for name, rows in self.rows.items()}

    def add(self, event: Any) -> None:
        """Take in one event; what is not understood is left out."""
        if not isinstance(event, dict):
            return
        kind = event.get("kind")
        if kind == "rollback" and len(self.rollbacks) < 1000:
            self.rollbacks.append({name: event.get(name) for name in ("step", "to", "rate_scale", "why")})
        place = [number(event.get(name)) for name in ACROSS]
        for name, (needed, key) in SERIES.items():
            if kind == needed and key in event:
                rows = self.rows.setdefault(name, [])
                if len(rows) < MOST:
                    rows.append((*place, norm(event[key])))  # type: ignore[arg-type]


class CurveStore:
    """The curves that were asked for last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Path, Curve] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, path: Path) -> Curve:
        """The curve in a file as it is now; empty where there is none."""
        with self._lock:
            curve = self._kept.pop(path, None) or Curve()
            curve = self._kept[path] = read_on(path, curve)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return curve


def read_on(path: Path, curve: Curve) -> Curve:
    """The curve with what was added to its file; begun anew where the file was cut back, as when a run is resumed."""
    try:
        with path.open("rb") as file:
            status = path.stat()
            if status.st_ino != curve.number or status.st_size < curve.offset:
                curve = Curve(status.st_ino)
            file.seek(curve.offset)
            while (line := file.readline(LONGEST)).endswith(b"\n"):
                curve.offset += len(line)
                curve.add(parsed(line))
    except OSError:
        return Curve()
    return curve


def parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def number(value: Any) -> float:
    """A number, or none."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    return float(value) if good else math.nan


def norm(value: Any) -> float:
    """A number; of several, as norms have one a layer, the root of the sum of their squares."""
    if isinstance(value, dict):
        return math.sqrt(sum(number(each) ** 2 for each in value.values()))
    return number(value)


def room(lines: int) -> int:
    """Points of each of so many lines."""
    return max(FEWEST, min(FINEST, POINTS // max(1, lines)))


def cut(line: Line, points: int) -> Line:
    """A line of at most about `points` points: the lowest and the highest of each stretch, and both ends."""
    x, y = line
    if len(x) <= points:
        return line
    stretches = np.array_split(np.arange(len(x)), max(1, points // 2))
    chosen = {0, len(x) - 1}
    for stretch in stretches:
        chosen |= {int(stretch[np.argmin(y[stretch])]), int(stretch[np.argmax(y[stretch])])}
    kept = np.array(sorted(chosen))
    return x[kept], y[kept]


def smoothed(line: Line, share: float) -> Line:
    """Each value mixed with the mean of those before it, which has `share` of it (0 to 0.99)."""
    x, y = line
    if not share or not len(y):
        return line
    found, mean, weight = np.empty_like(y), 0.0, 0.0
    for place, value in enumerate(y.tolist()):
        mean, weight = share * mean + (1 - share) * value, share * weight + 1 - share
        found[place] = mean / weight  # as if there had been none before the first
    return x, found
