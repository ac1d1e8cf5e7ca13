"""The leaderboard on a terminal, as CSV and as JSON."""

from __future__ import annotations

import io
import itertools
import json
from typing import Any

from rich.console import Console
from rich.table import Table

from weft import terminal
from weft.report.columns import Column, Row, columns, written
from weft.terminal import CsvWriter, how_many

WIDE = 150
NARROW = ("score", "steps", "training_rows", "parameters", "latency", "core_seconds")
"""What 80 characters have room for, mostly."""
LEAST = ("score", "steps")  # what is shown however narrow it is: names are not cut for more
STORED = ("name", "model", "group", "seeds", "score", "low", "high", "parameters", "macs", "train_speed", "speed",
          "latency", "memory", "seconds", "core_seconds", "money", "lr", "steps",
          "accuracy", "balanced_accuracy", "macro_f1", "training_rows")  # fmt: skip


def show(summary: dict[str, Any], console: Console | None = None) -> None:
    """Leaderboard, failures, verdicts and notes, in colours where there are any."""
    console = console or terminal.console()
    console.print(leaderboard(summary, console.width))
    for row in summary["rows"]:
        for failure in row["failures"]:
            where = f" ({failure['log']})" if failure["log"] else ""
            console.print(f"{row['name']}, seed {failure['seed']}: {failure['reason']}{where}", style="red")
        if row.get("waiting"):
            console.print(f"{row['name']}: {how_many(row['waiting'], 'run')} not run yet", style="dim")
    for sentence in [*summary.get("cautions", []), *summary.get("guesses", [])]:  # before anything is concluded
        console.print(f"note: {sentence}", style="yellow")
    for sentence in [*(verdict["sentence"] for verdict in summary["verdicts"]), summary["recommendation"]]:
        if sentence:
            console.print(f"• {sentence}")
    for one in [*summary.get("settling", []), *summary.get("more_rows", [])]:
        console.print(f"  {one['sentence']}", style="dim")
    for problem in summary["problems"]:
        console.print(f"note: {problem}", style="yellow")


def leaderboard(summary: dict[str, Any], width: int) -> Table:
    """A row a candidate, best first; controls and baselines are dim."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    titles, lines = cell_table(summary, width)
    table.add_column(titles[0], no_wrap=True)
    for title in titles[1:]:
        table.add_column(title, justify="right", no_wrap=True)
    for row, cells in zip(summary["rows"], lines, strict=True):
        table.add_row(*cells, style="dim" if row["group"] in ("control", "classical") else "")
    return table


def cell_table(summary: dict[str, Any], width: int = 80) -> tuple[list[str], list[list[str]]]:
    """Titles and cells of the leaderboard, as many columns as `width` characters have room for."""
    every = columns(summary["metric"], summary["rows"])
    known = [column for column in every if width >= WIDE or column.key in NARROW]
    if own := summary.get("own_metric"):
        known = [column for column in known if column.key != own]
        known.insert(1, Column(own, own, True, lambda value: f"{value:.4f}"))
    while (
        (made := cut_into_cells(known, summary["rows"])) and total_width(*made) > width and known[-1].key not in LEAST
    ):
        known.pop()
    return made


def cut_into_cells(known: list[Column], rows: list[Row]) -> tuple[list[str], list[list[str]]]:
    titles = itertools.chain.from_iterable(headings(column) for column in known)
    lines = [[row["name"], *itertools.chain.from_iterable(cells_of(c, row) for c in known)] for row in rows]
    return ["candidate", *titles], lines


def total_width(titles: list[str], lines: list[list[str]]) -> int:
    """Characters of a line, with one between two columns on either side."""
    widths = [max(map(len, column)) for column in zip(titles, *lines, strict=True)]
    return sum(widths) + 2 * (len(widths) - 1)


def headings(column: Column) -> list[str]:
    return [column.title, "95 % interval"] if column.key == "score" else [column.title]


def cells_of(column: Column, row: Row) -> list[str]:
    """The cell of a column; a score is followed by its interval, rows have the side or length of their inputs."""
    if column.key == "training_rows":
        return [f"{written(column, row)}{own_extent(row)}"]
    if column.key != "score":
        return [written(column, row)]
    ends = [column.write(row[end]) for end in ("low", "high")] if row["low"] is not None else []
    return [written(column, row), f"{ends[0].removesuffix(' %')}…{ends[1]}" if ends else "–"]


def own_extent(row: Row) -> str:
    """The image side, or length of texts, that a candidate has for itself."""
    found = [f"{row[key]} {unit}" for key, unit in (("side", "px"), ("length", "tokens")) if row.get(key)]
    return f" ({found[0]})" if found else ""


def as_csv(summary: dict[str, Any]) -> str:
    """A line a candidate."""
    file = io.StringIO()
    writer = CsvWriter(file)
    writer.row(STORED)
    for row in summary["rows"]:
        writer.row(row.get(name, "") for name in STORED)
    return file.getvalue()


def as_json(summary: dict[str, Any]) -> str:
    """The whole summary."""
    return json.dumps(summary, indent=2, ensure_ascii=False, default=str) + "\n"
