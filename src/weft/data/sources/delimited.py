"""CSV, TSV, JSONL and plain text files: texts, text pairs and vectors, a row a line.

Cells become columns of numbers where nearly all of them are numbers, else of words; from there on the guessing of
input and target is that of Parquet.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from weft.data.config import SourceConfig
from weft.data.fingerprint import digest_files
from weft.data.labels import as_number
from weft.data.sources.arrow import arrow_table
from weft.data.sources.columns import Columns, columns_of
from weft.data.sources.splits import split_names
from weft.data.sources.table import Reading, Table
from weft.errors import WeftError

ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson", ".txt")
NUMBERS = 0.9  # share of a column's cells that must be numbers for the rest to be mistakes
_LIMIT = 1 << 30  # characters of a cell; what is too long is judged later, as a row with a name


@dataclass
class Lines:
    """A file's cells, row by row, and what was wrong with some rows."""

    names: list[str]
    rows: list[list[Any]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # line of each row
    faults: dict[int, str] = field(default_factory=dict)

    def add(self, line: int, cells: list[Any], fault: str | None = None) -> None:
        if fault is None and any(isinstance(cell, str) and _broken(cell) for cell in cells):
            fault = "the text is not UTF-8"
        if fault:
            self.faults[len(self.rows)] = fault
            cells = [None] * len(self.names)
        self.rows.append(cells)
        self.places.append(line)


def read_delimited(path: Path, config: SourceConfig) -> Reading:
    """A file, or a folder of files named after their splits."""
    root = path if path.is_dir() else path.parent
    files = [file for file in sorted(path.iterdir()) if file.suffix in ENDINGS] if path.is_dir() else [path]
    texts = {file: _read(file) for file in files}
    splits = split_names(files, root)
    first = texts[files[0]]
    columns = columns_of(_arrow(first).schema, config, files[0].name)
    tables = {split: _table([(file, texts[file]) for file in members], columns) for split, members in splits.items()}
    return Reading(columns.modality, dict(tables), digest_files(files, root), None, list(columns.inputs))


def _table(files: list[tuple[Path, Lines]], columns: Columns) -> Table:
    whole = Lines(files[0][1].names)
    names: list[str] = []
    for file, lines in files:
        if lines.names != whole.names:
            raise WeftError(f"{file} has the columns {', '.join(lines.names)}, not {', '.join(whole.names)}")
        whole.faults |= {len(whole.rows) + row: why for row, why in lines.faults.items()}
        whole.rows += lines.rows
        names += [f"{file.name} line {line}" for line in lines.places]
    return arrow_table(_arrow(whole), columns, lambda row: names[row], whole.faults)


def _read(file: Path) -> Lines:
    # Undecodable bytes survive as lone surrogates, so that the row they are in can be named.
    with file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
        if file.suffix in {".jsonl", ".ndjson"}:
            return _read_json(stream, file)
        if file.suffix == ".txt":
            lines = Lines(["text"])
            for number, text in enumerate(stream, 1):
                lines.add(number, [text.rstrip("\r\n")])
            return lines
        return _read_csv(stream, file)


def _read_csv(stream: Any, file: Path) -> Lines:
    """The first row names the columns, unless all its cells are numbers."""
    csv.field_size_limit(_LIMIT)
    tabs = file.suffix == ".tsv"  # where a quotation mark is a letter like any other
    reader = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(stream)
    rows = ((reader.line_num, row) for row in reader if row)
    _, head = next(rows, (0, []))
    if not head:
        raise WeftError(f"{file} is empty")
    numbers = all(np.isfinite(as_number(cell)) for cell in head)
    lines = Lines([f"c{number}" for number in range(len(head))] if numbers else [cell.strip() for cell in head])
    if numbers:
        lines.add(1, head)
    for line, row in rows:
        ragged = f"the row has {len(row)} cells where the header has {len(head)}" if len(row) != len(head) else None
        lines.add(line, row, ragged)
    return lines


def _read_json(stream: Any, file: Path) -> Lines:
    """An object a line; the first names the columns."""
    lines: Lines | None = None
    for number, text in enumerate(stream, 1):
        if not text.strip():
            continue
        row, fault = _object(text)
        if lines is None:
            if fault:
                raise WeftError(f"{file.name} line {number}: {fault}")
            lines = Lines(list(row))
        missing = [name for name in lines.names if name not in row]
        fault = fault or (f"the row lacks {', '.join(missing)}" if missing else None)
        lines.add(number, [row.get(name) for name in lines.names], fault)
    if lines is None:
        raise WeftError(f"{file} is empty")
    return lines


def _object(text: str) -> tuple[dict[str, Any], str | None]:
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        return {}, f"the line is not JSON ({error.msg})"
    return (row, None) if isinstance(row, dict) else ({}, "the line is not a JSON object")


def _arrow(lines: Lines) -> pa.Table:
    columns = {name: [row[at] for row in lines.rows] for at, name in enumerate(lines.names)}
    return pa.table({name: _column(cells) for name, cells in columns.items()})


def _column(cells: list[Any]) -> pa.Array:
    given = [cell for cell in cells if cell not in {None, ""}] if not _nested(cells) else []
    if _nested(cells):
        return pa.array(cells, pa.list_(pa.float32()))
    numbers = [as_number(cell) for cell in given]
    right = sum(number == number or str(cell).lower() == "nan" for cell, number in zip(given, numbers, strict=True))
    if given and right >= NUMBERS * len(given):
        whole = all(number == number and number == int(number) for number in numbers) and len(given) == len(cells)
        return pa.array([as_number(cell) for cell in cells], pa.float64()).cast(pa.int64() if whole else pa.float64())
    return pa.array(["" if cell is None else str(cell) for cell in cells], pa.string())


def _nested(cells: list[Any]) -> bool:
    return any(isinstance(cell, list) for cell in cells)


def _broken(cell: str) -> bool:
    try:
        cell.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate
        return True
    return False
