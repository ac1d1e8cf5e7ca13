"""record.json back from the disk, with the fields that tables, verdicts and commands rely on checked. No torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from weft.disk import read_object, validated


def countable(value: Any) -> Any:
    """Refuse whole numbers that no float can hold, and truth values, which Python takes for numbers."""
    if isinstance(value, bool) or (isinstance(value, int) and abs(value) >= 1 << 63):
        raise ValueError("it is no number that a run can have")
    return value


Number = Annotated[float, BeforeValidator(countable)]
Count = Annotated[int, BeforeValidator(countable), Field(ge=0)]


@dataclass
class Data:
    """What a record says of its source."""

    name: str
    fingerprint: str
    notes: list[str]


@dataclass
class Point:
    """A point of the curve."""

    kind: str
    step: Count
    epoch: Number | None = None
    loss: Number | None = None
    validation_metric: Number | None = None
    seconds: Number | None = None

    def __post_init__(self) -> None:
        needed = {"train": ("epoch", "loss"), "evaluation": ("epoch", "validation_metric")}.get(self.kind, ())
        for name in needed:
            if getattr(self, name) is None:
                raise ValueError(f"a point of kind {self.kind} has no {name}")


@dataclass
class Measured:
    """Metrics that are more than numbers, or that a verdict rests on."""

    accuracy: Number = 0.0
    chance: Number = 0.0
    accuracy_interval: Annotated[list[Number], Field(min_length=2, max_length=2)] = field(default_factory=list)
    confusion: list[list[Count]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if any(len(row) != len(self.confusion) for row in self.confusion):
            raise ValueError("confusion: its rows and columns are not those of the same classes")


@dataclass
class Place:
    """Where a run was computed."""

    threads: Annotated[int, Field(ge=1, le=1 << 20)] = 1


@dataclass
class Asked:
    """What a record repeats of its configuration, as far as tables need it."""

    seed: Count
    model: str
    source: str
    network: dict[str, Any]
    reading: dict[str, Any] = field(default_factory=dict)
    transform: dict[str, Any] = field(default_factory=dict)
    augment: dict[str, Any] = field(default_factory=dict)
    optimisation: dict[str, Any] = field(default_factory=dict)
    objective: dict[str, Any] = field(default_factory=dict)
    duration: dict[str, Any] = field(default_factory=dict)
    execution: dict[str, Any] = field(default_factory=dict)


@dataclass
class Record:
    """What every record has; there may be more in it."""

    status: Literal["finished", "failed"]
    metric: str
    metrics: dict[str, Any]
    config: Asked
    source: Data
    parameters: Count
    curve: list[Point]
    steps: Count
    wall_seconds: Number
    cost: Number
    environment: Place = field(default_factory=Place)
    beats_constant_guess: bool = True
    multiply_adds: Count = 0
    throughput: Number = 0.0
    cpu_seconds: Number = 0.0
    peak_memory: Count = 0
    reason: str = ""


def read_record(path: Path) -> dict[str, Any]:
    """The record in a file, or `Damaged` with the field that is wrong."""
    content = read_object(path)
    checked = validated(Record, content, path)
    validated(Measured, checked.metrics, f"{path}: metrics")
    if checked.status == "finished":
        validated(Number, checked.metrics.get(checked.metric), f"{path}: metrics.{checked.metric[:40]}")
    return content
