"""What a page opens with: how good the run is, what guessing would reach, and where it is weakest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.insight.finding import Finding
from weft.insight.intervals import share_interval
from weft.insight.subject import Subject
from weft.report.columns import share
from weft.report.heat import labels_of
from weft.training.storage.run_folder import RunFolder

ENOUGH = 5  # examples of a class below which its share says little


@dataclass(frozen=True)
class Fact:
    """A figure with its name, and a few words on it."""

    name: str
    value: str
    about: str


def score(subject: Subject, found: Sequence[Finding | str]) -> list[Fact]:
    """From the answers that the lens `mistakes` counted; else from the run's record; nothing for untrained networks."""
    for finding in found:
        if isinstance(finding, Finding) and finding.lens == "mistakes":
            return of_confusion(finding.record["confusion"], subject.card.classes, subject.split)
    return of_record(subject)


def of_confusion(matrix: list[list[int]], classes: list[str], split: str) -> list[Fact]:
    """Accuracy with its interval, the commonest class alone, the weakest class, and classes that are never answered."""
    names, total = labels_of(matrix, classes), sum(map(sum, matrix))
    right, counts = sum(matrix[i][i] for i in range(len(matrix))), [sum(line) for line in matrix]
    low, high = share_interval(right, total)
    most = max(range(len(counts)), key=counts.__getitem__)
    about = f"95 % interval {share(low)} to {share(high)}; {total:,} examples ({split})"
    found = [
        Fact("Accuracy", share(right / total), about),
        Fact("Always the commonest class", share(counts[most] / total), f"{names[most]}, {counts[most]:,} examples"),
    ]
    known = [number for number, count in enumerate(counts) if count >= ENOUGH]
    if known:
        worst = min(known, key=lambda number: matrix[number][number] / counts[number])
        about = f"right, {matrix[worst][worst]} of {counts[worst]} examples of {names[worst]}"
        found.append(Fact("Weakest class", share(matrix[worst][worst] / counts[worst]), about))
    silent = [names[n] for n, count in enumerate(counts) if count and not any(line[n] for line in matrix)]
    if silent:
        listed = ", ".join(silent[:3]) + (f" and {len(silent) - 3} more" if len(silent) > 3 else "")
        found.append(Fact("Classes never answered", f"{len(silent)} of {len(names)}", listed))
    return found


def of_record(subject: Subject) -> list[Fact]:
    """What the run's record says of the test split."""
    record = RunFolder(subject.folder).record() if subject.folder is not None else None
    if record is None or "metrics" not in record:
        return []
    numbers = {name: value for name, value in record["metrics"].items() if isinstance(value, int | float)}
    return [Fact(name, f"{value:.4g}".replace("-", "−"), "on the test split") for name, value in numbers.items()][:4]
