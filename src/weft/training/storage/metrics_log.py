"""The curve of a run on disk: metrics.jsonl (every event), summary.csv (one line per evaluation), TensorBoard events.

Events are appended in an order that depends on the steps alone, so a resumed run cuts the file back to the number of
events that its checkpoint had seen and writes the rest again.
"""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from weft import machine
from weft.disk import Damaged, parse_object, validated, write_bytes
from weft.errors import WeftError
from weft.terminal import CsvWriter

Event = dict[str, Any]
LONGEST = 16 << 20  # bytes of a line: a number or three for each layer of any network


def countable(value: Any) -> Any:
    """Refuse whole numbers that no float can hold, and truth values, which Python takes for numbers."""
    if isinstance(value, bool) or (isinstance(value, int) and abs(value) >= 1 << 63):
        raise ValueError("it is no number that a run can have")
    return value


Number = Annotated[float, BeforeValidator(countable)]
Count = Annotated[int, BeforeValidator(countable), Field(ge=0)]


@dataclass
class Point:
    """What all events have."""

    kind: str
    step: Count


@dataclass
class TrainPoint(Point):
    """The mean loss since the last one."""

    loss: Number


@dataclass
class Evaluation(Point):
    """Of the validation split, and where training stood; files of an older weft may lack the latter."""

    validation_loss: Number
    validation_metric: Number
    epoch: Number | None = None
    train_loss: Number | None = None
    lr: Number | None = None
    seconds: Number | None = None


@dataclass
class RollBack(Point):
    """A return to an earlier step."""

    to: Count
    rate_scale: Number


EVENTS: dict[str, type[Point]] = {"train": TrainPoint, "evaluation": Evaluation, "rollback": RollBack}
SUMMARY = ("epoch", "step", "train_loss", "validation_loss", "validation_metric", "lr", "seconds")


class Journal:
    """Writes events below `folder`; rank 0 only has a folder."""

    def __init__(self, folder: Path | None, keep: int = 0, tensorboard: bool = False) -> None:
        self.folder = folder
        self.count = keep
        self._board: Any = open_board(folder) if tensorboard and folder is not None else None
        if folder is not None:
            events = cut_back(folder / "metrics.jsonl", keep)
            self.count = len(events)
            with refusals_explained(folder / "metrics.jsonl"):
                self._file = machine.open_own(folder / "metrics.jsonl")
            self._write_summary(events)

    def add(self, event: Event) -> None:
        """Append one event, such as {"kind": "train", "step": 100, "loss": 1.2}."""
        self.count += 1
        if self.folder is None:
            return
        with refusals_explained(self.folder / "metrics.jsonl"):
            self._file.write(json.dumps(event) + "\n")
            self._file.flush()
        if event["kind"] == "evaluation":
            path = self.folder / "summary.csv"
            with refusals_explained(path), machine.open_own(path) as file:
                file.write(csv_lines([[event.get(name) for name in SUMMARY]]))
        if self._board is not None:
            self._draw(event)

    def close(self) -> None:
        if self.folder is not None:
            with refusals_explained(self.folder / "metrics.jsonl"):  # what a full disk refused is tried again here
                self._file.close()
        if self._board is not None:
            self._board.close()

    def _write_summary(self, events: list[Event]) -> None:
        assert self.folder is not None
        rows = [[event.get(name) for name in SUMMARY] for event in events if event["kind"] == "evaluation"]
        write_bytes(self.folder / "summary.csv", csv_lines([list(SUMMARY), *rows]).encode())

    def _draw(self, event: Event) -> None:
        for name, value in event.items():
            if isinstance(value, float):
                self._board.add_scalar(f"{event['kind']}/{name}", value, event["step"])
            elif isinstance(value, dict):
                for layer, norm in value.items():
                    self._board.add_scalar(f"{name}/{layer}", norm, event["step"])


def csv_lines(rows: list[list[Any]]) -> str:
    """Rows as the lines of a CSV file."""
    lines = io.StringIO()
    writer = CsvWriter(lines)
    for row in rows:
        writer.row(row)
    return lines.getvalue()


def cut_back(path: Path, keep: int) -> list[Event]:
    """The first `keep` events of a metrics.jsonl, which then holds no others; a kill leaves the old or the new file."""
    events = read_events(path)[:keep]
    content = "".join(json.dumps(event) + "\n" for event in events).encode()
    if path.is_symlink() or not path.is_file() or not holds(path, content):
        write_bytes(path, content)
    if len(events) < keep:
        warnings.warn(
            f"{path} has lost {keep - len(events)} points of the curve; training is not affected", stacklevel=2
        )
    return events


def holds(path: Path, content: bytes) -> bool:
    """Whether a file has this content."""
    return path.stat().st_size == len(content) and path.read_bytes() == content


@contextmanager
def refusals_explained(path: Path) -> Iterator[None]:
    """Turns a refused write into a sentence."""
    try:
        yield
    except OSError as error:
        raise WeftError(f"could not write {path}: {error.strerror or error}; make room and resume") from error


def read_events(path: Path) -> list[Event]:
    """All whole events of a metrics.jsonl; from the first line on that was cut off, or is damaged, none."""
    if not path.is_file():
        return []
    events = []
    with suppress(Damaged), path.open("rb") as file:
        while line := file.readline(LONGEST):
            events.append(parse_event(line, path))
    return events


def parse_event(line: bytes, path: Path) -> Event:
    """The event on a line."""
    event = parse_object(line.decode("utf-8", errors="replace"), path)
    validated(EVENTS.get(str(event.get("kind")), Point), event, path)
    return event


def open_board(folder: Path) -> Any:
    """TensorBoard's writer, or a sentence where the extra is missing."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise WeftError("--tensorboard needs the extra: pip install 'weft[tensorboard]'") from error
    return SummaryWriter(str(folder / "tensorboard"))
