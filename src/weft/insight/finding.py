"""What a lens gives: pictures, a table, a record, and one sentence of what they say; on a terminal and on disk."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console, JustifyMethod
from rich.table import Table as RichTable

from weft import terminal
from weft.disk import claim, write_bytes
from weft.errors import WeftError
from weft.report.standalone import standalone
from weft.terminal import CsvWriter

Cell = str | int | float | None


class Unfit(WeftError):
    """A lens that does not fit the network, or lacks data or a library: `all` goes on without it."""


@dataclass(frozen=True)
class Picture:
    """An SVG chart (text, its classes those of the report's style sheet) or a PNG (bytes).

    `caption` stands above it on the page; `alternative` is what a screen reader says of a PNG (an SVG says its own);
    `page` is HTML that stands for it there, where words can flow and tiles find their places.
    """

    content: str | bytes
    caption: str
    alternative: str = ""
    page: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under named columns; None is an empty cell."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Finding:
    """What one lens shows of one subject. `pictures` are in the order of the page; `record` is what JSON can hold.

    `more` are further tables, by name, which the terminal leaves out. `textbook` names the pictures and tables that
    hold for every network and say nothing of this one: a page has them at its end.
    """

    lens: str
    title: str
    sentence: str
    pictures: dict[str, Picture]
    table: Table
    record: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Table] = field(default_factory=dict)
    textbook: frozenset[str] = frozenset()

    def save(self, folder: str | Path) -> list[Path]:
        """Write LENS.json, LENS.csv, LENS-TABLE.csv and LENS-PICTURE.svg or .png; returns what was written."""
        found = {Path(folder, name): content for name, content in self._files()}
        for path in found:  # all, before the first is written
            claim(path, "choose another --output")
        for path, content in found.items():
            write_bytes(path, content)
        return list(found)

    def _files(self) -> Iterator[tuple[str, bytes]]:
        """Names and contents of what is saved."""
        for name, picture in self.pictures.items():
            if isinstance(picture.content, bytes):
                yield f"{self.lens}-{name}.png", picture.content
            else:
                yield f"{self.lens}-{name}.svg", standalone(picture.content).encode()
        for name, table in self.more.items():
            yield f"{self.lens}-{name}.csv", as_csv(table)
        yield f"{self.lens}.csv", as_csv(self.table)
        content = {"lens": self.lens, "title": self.title, "sentence": self.sentence, **self.record}
        yield f"{self.lens}.json", (json.dumps(plain(content), indent=2, ensure_ascii=False) + "\n").encode()

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


def as_csv(table: Table) -> bytes:
    """A table as CSV."""
    file = io.StringIO(newline="")
    writer = CsvWriter(file)
    for row in [table.columns, *table.rows]:
        writer.row(row)
    return file.getvalue().encode()


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
