"""What the target is: which task, which classes, and raw labels as numbers for the loss."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.config import Task
from weft.errors import WeftError

MANY = 100  # more distinct integers than this are quantities, not classes


@dataclass(frozen=True)
class Labels:
    """The code from raw labels to targets: int64 for classes, float32 for binary and regression."""

    task: Task
    classes: tuple[str, ...] = ()
    numbered: bool = False  # raw integers count the classes, rather than name them

    def encode(self, raw: NDArray[Any] | None, rows: int) -> tuple[NDArray[Any], dict[int, str]]:
        """(rows,) targets, and row -> why its label is bad. Without a task every target is 0."""
        if self.task == "none" or raw is None:
            return np.zeros(rows, np.int64), {}
        if self.task == "regression":
            return self._encode_numbers(raw)
        codes = self._codes(raw)
        faults = {int(row): self._outside(raw[row]) for row in np.flatnonzero(codes < 0)}
        return (codes.astype(np.float32) if self.task == "binary" else codes), faults

    def _codes(self, raw: NDArray[Any]) -> NDArray[np.int64]:
        if self.numbered and raw.dtype.kind in "iu":
            return np.where((raw >= 0) & (raw < len(self.classes)), raw, -1).astype(np.int64)
        number = {name: code for code, name in enumerate(self.classes)}
        if self.numbered:
            number |= {str(code): code for code in range(len(self.classes))}
        values, where = np.unique(np.array([word(value) for value in raw.tolist()], dtype=object), return_inverse=True)
        return np.array([number.get(value, -1) for value in values], dtype=np.int64)[where]

    def _encode_numbers(self, raw: NDArray[Any]) -> tuple[NDArray[np.float32], dict[int, str]]:
        values = np.array([as_number(value) for value in raw.tolist()], dtype=np.float32)
        bad = np.flatnonzero(~np.isfinite(values))
        return values, {int(row): f"the target {raw[row]!r} is not a finite number" for row in bad}

    def _outside(self, value: Any) -> str:
        if self.numbered:
            return f"the label {word(value)} is outside the range 0 to {len(self.classes) - 1}"
        return f"the label {word(value)!r} is missing or none of the {len(self.classes)} classes"


def decide(values: Iterable[Any], rows: int, names: list[str] | None, task: Task | None) -> Labels:
    """The code for a column with these distinct values in `rows` rows; `names` and `task` overrule them."""
    if names is not None and task != "regression":
        return Labels(task or _by_count(names), tuple(names), numbered=True)
    numbers = {as_number(value): value for value in values if value is not None and value == value}
    finite = [number for number in numbers if np.isfinite(number)]
    whole = len(finite) == len(numbers) and all(number == int(number) for number in finite)
    if task == "regression" or (task is None and finite and not whole and len(finite) == len(numbers)):
        return Labels("regression")
    if task is None and whole and (len(finite) > MANY or len(finite) * 2 > rows):
        return Labels("regression")
    if whole:
        return _classes([str(int(number)) for number in sorted(finite) if not _unlabelled(number, finite)], task)
    return _classes(sorted({word(value) for value in values if value is not None and value == value}), task)


def _unlabelled(number: float, all_numbers: list[float]) -> bool:
    """Whether a number says that there is no label: -1 beside the classes 0, 1, 2, … as in GLUE's files.

    Beside 0 and 1 alone it may as well be the third class, and stays one.
    """
    rest = sorted(set(all_numbers) - {-1.0})
    return number == -1 and len(rest) > 2 and rest == list(range(len(rest)))


def word(value: Any) -> str:
    """A raw label as the name of its class: 3, 3.0 and "3" are one."""
    if isinstance(value, float | np.floating) and value == value and value == int(value):
        return str(int(value))
    return str(value).strip()


def as_number(value: Any) -> float:
    """A raw label as a number; NaN where it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def _classes(names: list[str], task: Task | None) -> Labels:
    if len(names) < 2:
        found = f"only the class {names[0]!r}" if names else "no label at all"
        raise WeftError(f"the target has {found}; a classifier needs two classes, or use --task none")
    return Labels(task or _by_count(names), tuple(names))


def _by_count(names: list[str]) -> Task:
    return "binary" if len(names) == 2 else "classes"
