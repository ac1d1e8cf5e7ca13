"""`weft eval`: the metrics of a trained network on its own source or another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tyro.conf import Positional

from weft.terminal import brief_list

FEW = 12  # classes whose confusions fit a screen as a table


@dataclass(frozen=True)
class Arguments:
    """Evaluate a run: weft eval RUN [SOURCE]"""

    run: Positional[Path]
    """Run folder."""
    source: Positional[str | None] = None
    """Source to evaluate on, read as the run's own was (columns, target, task, bad rows); by default the run's own.
    Of another source its test split is scored, or its validation split, or all rows where it has neither."""
    split: str | None = None
    """Another split of that source, by its name; of the run's own also train, validation or test."""
    target: str | None = None
    """Column of that source with the right answers; needed only where it is not called as in the run's own."""
    inputs: tuple[str, ...] | None = None
    """Column, or the two columns of a text pair, to answer from; needed only where they are not called so either."""
    on_bad: Literal["fail", "skip"] | None = None
    """fail: stop at the first bad row, naming it; skip: leave bad rows out; by default as in the run."""
    batch_size: int = 256
    """Examples at a time; changes nothing but speed and memory."""
    encoder: Path | None = None
    """Where the frozen encoder lies that the network stands on, if it is not in the run's folder."""
    json: bool = False
    """Print JSON, the confusion matrix included."""


def run(arguments: Arguments) -> int:
    """Print the metrics."""
    from weft.training.inference.evaluate import evaluate_run

    asked = arguments
    metrics = evaluate_run(
        asked.run,
        asked.source,
        asked.split,
        asked.batch_size,
        asked.encoder,
        asked.on_bad,
        target=asked.target,
        inputs=asked.inputs,
    )
    if arguments.json:
        print(json.dumps(metrics))
        return 0
    classes, matrix = metrics.pop("classes", []), metrics.pop("confusion", None)
    width = max(map(len, metrics)) + 2
    for name, value in metrics.items():
        print(f"{name:<{width}}{shown(value)}")
    for line in [] if matrix is None else confusion_lines(classes, matrix):
        print(line)
    return 0


def shown(value: Any) -> str:
    """A metric for reading: numbers to four digits, intervals by their ends, names as a list."""
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, list):
        numbers = value and all(isinstance(number, float) for number in value)
        return " – ".join(map(shown, value)) if numbers else brief_list(map(str, value)) or "none"
    return str(value)


def confusion_lines(names: list[str], matrix: list[list[int]]) -> Iterator[str]:
    """A table with the names of the classes; of many, the commonest confusions by name instead."""
    from weft.report.heat import commonest

    if len(names) <= FEW:
        yield "confusion (down: the true class; across: the answer)"
        side = max(map(len, names))
        widths = [max(len(name), *(len(str(row[at])) for row in matrix)) for at, name in enumerate(names)]
        yield "  " + " " * side + "  " + "  ".join(n.rjust(w) for n, w in zip(names, widths, strict=True))
        for name, row in zip(names, matrix, strict=True):
            yield f"  {name:<{side}}  " + "  ".join(str(n).rjust(w) for n, w in zip(row, widths, strict=True))
    else:
        wrong = sum(map(sum, matrix)) - sum(matrix[number][number] for number in range(len(matrix)))
        yield f"commonest confusions of {wrong:,} (--json has the whole matrix)"
        for count, true, said, _ in commonest(matrix, names, FEW):
            yield f"  {count:>6,}  {true} taken for {said}"
