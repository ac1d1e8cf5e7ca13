"""What a lens gives: pictures, a table, a record, and one sentence of what they say; on a terminal and on disk."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console, JustifyMethod
from rich.table import Table as RichTable

from weft import terminal
from weft.errors import WeftError
from weft.escape import CsvWriter
from weft.report.standalone import standalone

Cell = str | int | float | None


class Unfit(WeftError):
    """A lens that does not fit the network, or lacks data or a library: `all` goes on without it."""


@dataclass(frozen=True)
class Picture:
    """An SVG chart (text, its classes those of the report's style sheet) or a PNG (bytes).

    `caption` stands above it on the page; `alternative` is what a screen reader says of a PNG (an SVG says its own).
    """

    content: str | bytes
    caption: str
    alternative: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under named columns; None is an empty cell."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Finding:
    """What one lens shows of one subject. `pictures` are in the order of the page; `record` is what JSON can hold.

    `more` are further tables, by name, which the terminal leaves out.
    """

    lens: str
    title: str
    sentence: str
    pictures: dict[str, Picture]
    table: Table
    record: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Table] = field(default_factory=dict)

    def save(self, folder: str | Path) -> list[Path]:
        """Write LENS.json, LENS.csv, LENS-TABLE.csv and LENS-PICTURE.svg or .png; returns what was written."""
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            paths = [self._save_picture(folder, name, picture) for name, picture in self.pictures.items()]
            paths += [save_table(folder / f"{self.lens}-{name}.csv", table) for name, table in self.more.items()]
            return [*paths, save_table(folder / f"{self.lens}.csv", self.table), self._save_record(folder)]
        except OSError as error:
            raise WeftError(f"cannot write to {folder}: {error.strerror}; choose another --out") from error

    def _save_picture(self, folder: Path, name: str, picture: Picture) -> Path:
        if isinstance(picture.content, bytes):
            path = folder / f"{self.lens}-{name}.png"
            path.write_bytes(picture.content)
        else:
            path = folder / f"{self.lens}-{name}.svg"
            path.write_text(standalone(picture.content), encoding="utf-8")
        return path

    def _save_record(self, folder: Path) -> Path:
        path = folder / f"{self.lens}.json"
        content = {"lens": self.lens, "title": self.title, "sentence": self.sentence, **self.record}
        path.write_text(json.dumps(plain(content), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        return path

    def show(self, console: Console | None = None, rows: int = 24) -> None:
        """Print the table's first rows, as many of its columns as there is room for, and the sentence."""
        console = console or terminal.console()
        console.print(self.title, style="bold")
        table = RichTable(box=None, header_style="bold", pad_edge=False)
        shown = fitting_columns(self.table, rows, console.width)
        for number, column in enumerate(self.table.columns[:shown]):
            longest = max((len(written(row[number])) for row in self.table.rows[:rows]), default=0)
            side: JustifyMethod = "right" if numeric(self.table, number) else "left"
            table.add_column(column.replace(" ", "\n"), justify=side, min_width=longest)
        for row in self.table.rows[:rows]:
            table.add_row(*(written(cell) for cell in row[:shown]))
        console.print(table)
        if shown < len(self.table.columns):
            left_out = "; ".join(self.table.columns[shown:])
            console.print(f"… and the columns {left_out} in {self.lens}.csv", style="dim")
        if len(self.table.rows) > rows:
            console.print(f"… and {len(self.table.rows) - rows} more rows, all in {self.lens}.csv", style="dim")
        console.print(self.sentence)


def save_table(path: Path, table: Table) -> Path:
    """Write a table as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = CsvWriter(file)
        for row in [table.columns, *table.rows]:
            writer.row(row)
    return path


def fitting_columns(table: Table, rows: int, width: int) -> int:
    """How many columns, from the first, a terminal shows unabridged; a heading may take several lines."""
    used = 0
    for number, column in enumerate(table.columns):
        cells = [written(row[number]) for row in table.rows[:rows]]
        used += 2 + max(map(len, [*column.split(), *cells]))
        if used - 2 > width and number > 1:
            return number
    return len(table.columns)


def numeric(table: Table, column: int) -> bool:
    """Whether a column holds numbers, which are aligned on the right."""
    return all(row[column] is None or isinstance(row[column], int | float) for row in table.rows)


def written(cell: Cell) -> str:
    """A cell for reading: four digits of a number, an en dash for nothing."""
    if cell is None:
        return "–"
    if isinstance(cell, bool) or not isinstance(cell, float):
        return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)
    if cell and not 1e-3 <= abs(cell) < 1e6:
        return f"{cell:.2e}"
    return f"{cell:.4g}"


def plain(value: Any) -> Any:
    """What JSON can hold: numbers that are not finite become null, tuples lists."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
