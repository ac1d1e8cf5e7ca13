"""The columns of a leaderboard: what each holds, which way is better, and how it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """A column: `key` of the row, heading, whether more is better, and how a value is written."""

    key: str
    title: str
    higher: bool
    write: Callable[[float], str]
    log: bool = True  # whether a chart's axis for it is logarithmic
    drawn: bool = True  # whether charts have it
    help: str = ""


def scaled(value: float, digits: int = 3) -> str:
    """A number in three digits with k, M, G or T: 99,981 is 100 k."""
    size, unit = value, ""
    for unit in ("", " k", " M", " G", " T"):  # noqa: B007
        if abs(size) < 999.5:
            break
        size /= 1000
    return f"{size:.{digits}g}{unit}" if abs(size) < 99.95 else f"{size:.0f}{unit}"


def duration(value: float) -> str:
    """Seconds as µs, ms, s, min or h."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1, 1e3, "ms"), (100, 1, "s"), (6000, 1 / 60, "min")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value / 3600:.3g} h"


def gigabytes(value: float) -> str:
    return f"{value / 2**30:.2f} GiB"


def share(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:.1f} %"


def uneven(rows: Sequence[Row]) -> bool:
    """Whether the networks of a table were trained for other numbers of steps."""
    steps = [row["steps"] for row in rows if row.get("steps") and row.get("group") != "classical"]
    return bool(steps) and max(steps) > 1.1 * min(steps)


def unequal_rows(rows: Sequence[Row]) -> bool:
    """Whether the candidates of a table learnt from other numbers of training rows."""
    return len({row["training_rows"] for row in rows if row.get("training_rows")}) > 1


TITLES = {"accuracy": "Accuracy", "balanced_accuracy": "Balanced accuracy", "macro_f1": "Macro-F1", "r2": "R²"}
SHARES = ("accuracy", "balanced_accuracy", "macro_f1")  # metrics that are written in percent
ALIKE = 0.01  # of scores that tell the same


def columns(metric: str, rows: Sequence[Row] = ()) -> list[Column]:
    """All columns of a table; speeds are of tokens where texts were read, steps and training rows are told where they
    are unequal."""
    unit = "tokens" if any(row.get("tokens") for row in rows) else "examples"
    counted = [Column("training_rows", "Rows", True, lambda v: f"{v:,.0f}", drawn=False, help="that it learnt from")]
    write = share if metric in SHARES else lambda value: f"{value:.3f}"
    title = TITLES.get(metric, metric)
    folds = next((row["folds"] for row in rows if row.get("folds")), None)
    run = f"one repetition, {folds} training runs" if folds else "one training run"
    every = [
        Column("score", title, True, write, log=False, help="mean on the test split, with its 95 % interval"),
        Column("accuracy", "Accuracy", True, share, drawn=False, help="mean on the test split"),
        Column(
            "balanced_accuracy", "Balanced", True, share, drawn=False, help="mean over the classes of their accuracy"
        ),
        Column("macro_f1", "Macro-F1", True, share, drawn=False, help="mean over the classes of their F1"),
        *([Column("steps", "Steps", False, lambda v: f"{v:,.0f}", help="of one training run")] if uneven(rows) else []),
        *(counted if unequal_rows(rows) else []),
        Column("parameters", "Parameters", False, scaled),
        Column("macs", "Multiply-adds", False, scaled, help="of one forward pass of one example"),
        Column("train_speed", "Training", True, lambda v: f"{scaled(v)}/s", help=f"{unit} a second and core"),
        Column(
            "speed", "Inference", True, lambda v: f"{scaled(v)}/s", help=f"{unit} a second on one core, many at once"
        ),
        Column("latency", "Latency", False, duration, help="of one example on one core"),
        Column("memory", "Memory", False, gigabytes, help="peak of the training process"),
        Column("core_seconds", "Compute", False, duration, help=f"core time of {run}"),
        Column("money", "Money", False, lambda v: f"{v:.2g}", help=f"of {run}, at the price per hour given"),
    ]
    told = metric if metric in SHARES else "accuracy"  # by the score itself, or nothing
    said = {told, *(key for key in ("balanced_accuracy", "macro_f1") if says_nothing_new(key, metric, rows))}
    return [column for column in every if column.key not in said]


def says_nothing_new(key: str, metric: str, rows: Sequence[Row]) -> bool:
    """Whether a metric is the score itself, nearly, in every row: classes are about as common as each other then."""
    pairs = [(row["score"], row.get(key)) for row in rows if row.get("score") is not None]
    near = all(value is not None and abs(score - value) < ALIKE for score, value in pairs)
    return metric in SHARES and bool(pairs) and near


def written(column: Column, row: Row) -> str:
    """The cell of a row; an en dash where there is no value."""
    value = row.get(column.key)
    return "–" if value is None else column.write(value)
