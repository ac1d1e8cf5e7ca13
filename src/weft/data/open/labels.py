"""What the target is: which task, which classes, and raw labels as numbers for the loss."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weft.data.config import Task
from weft.data.sources.table import as_number, missing, word
from weft.errors import WeftError
from weft.terminal import brief_list

if TYPE_CHECKING:
    from weft.data.open.source import Source

MANY = 100  # more distinct integers than this are quantities, not classes
UNEVEN = 10  # times as many rows as the rarest class has, at which weights are offered
NARROW = 1e3
"""float32 rounds by 6e-8 of a number: of targets this many deviations from zero, by less than 1e-4 of a deviation."""


@dataclass(frozen=True)
class Labels:
    """The code from raw labels to targets: int64 for classes, float32 for binary, float32 or 64 for regression."""

    task: Task
    classes: tuple[str, ...] = ()
    numbered: bool = False  # raw integers count the classes, rather than name them
    wide: bool = False  # float32 would lose the digits by which the targets differ
    note: str = ""  # what was decided that might surprise
    padded: tuple[str, ...] = ()  # classes whose labels have blanks around them in some rows, none or others elsewhere
    spelt: tuple[str, ...] = ()  # what raw integers stand for, where a source counts the classes in its own order

    def encode(self, raw: NDArray[Any] | None, rows: int) -> tuple[NDArray[Any], dict[int, str]]:
        """(rows,) targets, and row -> why its label is bad. Without a task every target is 0."""
        if self.task == "none" or raw is None:
            return np.zeros(rows, np.int64), {}
        if self.task == "regression":
            return self._encode_numbers(raw)
        codes = self._codes(raw)
        unknown = {int(row): raw[row] for row in np.flatnonzero(codes < 0)}
        said = {key: self._outside(value) for key, value in {repr(value): value for value in unknown.values()}.items()}
        faults = {row: said[repr(value)] for row, value in unknown.items()}
        return (codes.astype(np.float32) if self.task == "binary" else codes), faults

    def _codes(self, raw: NDArray[Any]) -> NDArray[np.int64]:
        if self.spelt and raw.dtype.kind in "iu":
            raw = np.array([self._spelling(value) for value in raw.tolist()], dtype=object)
        elif self.numbered and raw.dtype.kind in "iu":
            return np.where((raw >= 0) & (raw < len(self.classes)), raw, -1).astype(np.int64)
        number = {name: code for code, name in enumerate(self.classes)}
        if self.numbered:
            number |= {str(code): code for code in range(len(self.classes))}
        values, where = np.unique(np.array([word(value) for value in raw.tolist()], dtype=object), return_inverse=True)
        return np.array([number.get(value, -1) for value in values], dtype=np.int64)[where]

    def _encode_numbers(self, raw: NDArray[Any]) -> tuple[NDArray[Any], dict[int, str]]:
        values = np.array([as_number(value) for value in raw.tolist()], dtype=np.float64)
        with np.errstate(over="ignore"):
            narrow = values.astype(np.float32)
        faults = {int(row): _no_number(raw[row]) for row in np.flatnonzero(~np.isfinite(narrow))}
        return (values if self.wide else narrow), faults

    def _spelling(self, value: Any) -> str:
        """The name that a source has for the class of a raw integer."""
        return (
            self.spelt[value] if isinstance(value, int | np.integer) and 0 <= value < len(self.spelt) else word(value)
        )

    def _outside(self, value: Any) -> str:
        if missing(value):
            named = word(value)
            return "the label is missing" + (f" ({named}; where that is a class, give it another name)" * bool(named))
        value = self._spelling(value) if self.spelt else value
        if self.numbered and not self.spelt and as_number(value) == as_number(value):
            return f"the label {word(value)} is outside the range 0 to {len(self.classes) - 1}"
        name = word(value)
        alike = next((names[1] for names in look_alikes([name, *self.classes]) if names[0] == name), None)
        hint = "" if alike is None else f", but differs from {alike!r} in case or blanks alone"
        return f"the label {name!r} is none of the {len(self.classes)} classes ({brief_list(self.classes)}){hint}"


def is_padded(value: Any) -> bool:
    """Whether a raw label has blanks around it, which its class has not."""
    return isinstance(value, str) and value != value.strip()


def _padded(values: list[Any]) -> set[str]:
    """Names that are written with blanks around them and without, or with other blanks."""
    spellings = [value for value in values if isinstance(value, str)]
    twice = {name for name, count in Counter(map(str.strip, spellings)).items() if count > 1}
    return {word(value) for value in spellings if is_padded(value) and value.strip() in twice}


def decide(values: Iterable[Any], rows: int, names: list[str] | None, task: Task | None) -> Labels:
    """The code for a column with these distinct values in `rows` rows; `names` and `task` overrule them."""
    if names is not None and task != "regression":
        return Labels(_task(names, task), tuple(names), numbered=True)
    values = list(values)
    absent = sorted({word(value) for value in values if missing(value)} - {""})
    values = [value for value in values if not missing(value) and not _infinite(value)]
    numbers = {as_number(value) for value in values}
    finite = np.array(sorted(number for number in numbers if math.isfinite(number)))
    all_numbers = len(finite) > 0 and len(finite) == len(numbers)
    whole = all_numbers and bool((finite == np.floor(finite)).all())
    if task == "regression" or (task is None and all_numbers and not whole):
        return Labels("regression", wide=wide(finite))
    if task is None and whole and (len(finite) > MANY or len(finite) * 2 > rows):
        note = f"the target's {len(finite):,} different whole numbers are taken for quantities, not classes"
        return Labels("regression", wide=wide(finite), note=f"{note}; if they are classes, add --task classes")
    hidden = {-1.0} if whole and _withheld(finite) else set()
    names = [word(number) for number in finite.tolist() if number not in hidden] if whole else None
    found = _classes(names or sorted({word(value) for value in values}), task, absent)
    return replace(found, padded=tuple(sorted(_padded(values))))


def wide(numbers: NDArray[Any]) -> bool:
    """Whether targets need float64 until they are centred: they lie far from zero for how little they differ."""
    numbers = np.asarray(numbers, dtype=np.float64)
    numbers = numbers[np.abs(numbers) < np.finfo(np.float32).max]
    if len(numbers) == 0 or (spread := float(numbers.std())) == 0:
        return False
    return bool(np.abs(numbers).max() > NARROW * spread) or not 1e-15 < spread < 1e15  # whose squares float32 lacks


def look_alikes(classes: Iterable[str]) -> list[list[str]]:
    """Classes that people would take for one: they differ in case, blanks or the writing of an accent alone."""
    groups: dict[str, list[str]] = {}
    for name in classes:
        key = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
        groups.setdefault(key, []).append(name)
    return [names for names in groups.values() if len(names) > 1]


def _withheld(numbers: NDArray[Any]) -> bool:
    """Whether -1 says that there is no label: beside the classes 0, 1, 2, … as in GLUE's files.

    Beside 0 and 1 alone it may as well be the third class, and stays one.
    """
    return len(numbers) > 3 and bool((numbers == np.arange(-1, len(numbers) - 1)).all())


def _infinite(value: Any) -> bool:
    return isinstance(value, float | np.floating) and math.isinf(value)


def _no_number(value: Any) -> str:
    return "the target is missing" if missing(value) else f"the target {value!s} is no number below 3e38"


def _classes(names: list[str], task: Task | None, absent: list[str]) -> Labels:
    """The classes of these names; `absent` are the words that were taken for missing labels."""
    if len(names) < 2:
        found = f"only the class {names[0]!r}" if names else "no label at all"
        if absent:
            found += f" ({', '.join(absent)}: taken for missing labels; where that is a class, give it another name)"
        raise WeftError(f"the target has {found}; a classifier needs two classes, or use --task none")
    return Labels(_task(names, task), tuple(names))


def _task(names: list[str], asked: Task | None) -> Task:
    """Two classes are a binary task, unless asked otherwise; more cannot be one."""
    if asked == "binary" and len(names) != 2:
        raise WeftError(f"the target has {len(names):,} classes, and --task binary is for 2; use --task classes")
    return asked or ("binary" if len(names) == 2 else "classes")


def uneven(source: Source) -> Iterator[str]:
    """An offer of class weights where the commonest class has many times the training rows of the rarest."""
    if source.task not in ("classes", "binary"):
        return
    counts = np.bincount(source.splits["train"].targets.astype(np.int64), minlength=len(source.classes))
    if counts.min() == 0 or counts.max() < UNEVEN * counts.min():
        return
    most, least = source.classes[int(counts.argmax())], source.classes[int(counts.argmin())]
    times = counts.max() // counts.min()
    yield f"{most!r} has {times:,} times the rows of {least!r}: --class-weights balanced would weigh them alike"
