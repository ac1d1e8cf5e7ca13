"""CSV, TSV, JSONL and plain text files: texts, text pairs and vectors, a row a line.

Cells become columns of numbers where nearly all of them are numbers, else of words; from there on the guessing of
input and target is that of Parquet.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa

from weft.data.config import SourceConfig
from weft.data.read.cache import digest_files
from weft.data.sources.arrow import arrow_table
from weft.data.sources.columns import Columns, columns_of, variety
from weft.data.sources.encoding import encoding_of
from weft.data.sources.table import Reading, Table, as_number, leading, missing, regular_files, split_names
from weft.errors import WeftError

ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson", ".txt")
NUMBERS = 0.9  # share of a column's cells that must be numbers for the rest to be mistakes
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
SEPARATOR = re.compile('"?sep=(.)"?\\s*', re.IGNORECASE)  # the first line by which Excel is told what parts the cells
MARKED = 20  # characters of it at most
SAMPLE = 100  # rows that decide what stands between cells
_LIMIT = 1 << 30  # characters of a cell; what is too long is judged later, as a row with a name
_WHOLE = 1 << 53  # beyond which float64, through which cells go, skips integers


@dataclass
class Lines:
    """A file's cells, row by row, and what was wrong with some rows."""

    names: list[str]
    rows: list[list[Any]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # line of each row
    faults: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    commas: bool = False  # whether numbers may be written as 1,5
    headed: bool = True  # whether the file itself names its columns

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
    files, others = _files(path) if path.is_dir() else ([path], [])
    texts = {file: _read(file) for file in files}
    splits = split_names(files, root)
    first = leading(splits)
    table = _arrow(texts[first])
    columns = columns_of(table.schema, config, first.name, lambda name: variety(table.column(name)))
    tables = {split: _table([(file, texts[file]) for file in members], columns) for split, members in splits.items()}
    notes = [*columns.notes, *(note for lines in texts.values() for note in lines.notes)]
    notes += [f"{', '.join(file.name for file in others[:3])}: left out, as there are tables beside"] if others else []
    content = digest_files(files, root)
    return Reading(
        columns.modality, dict(tables), content, None, columns.features, notes, columns.target, columns.spare
    )


def read_lines(file: Path, stream: TextIO | None = None) -> Lines:
    """The cells of one file, or of a `stream` that is read as if it were that file, without a meaning."""
    return _read(file) if stream is None else _read_stream(stream, file)


def number_in(cell: Any, commas: bool) -> float:
    """A cell as a number, NaN where it is none."""
    return _with_comma(cell) if commas else as_number(cell)


def _files(folder: Path) -> tuple[list[Path], list[Path]]:
    """The tables below a folder, and plain text that lies beside them: a README; or plain text alone."""
    found = regular_files(folder, *ENDINGS)
    tables = [file for file in found if file.suffix.lower() != ".txt"]
    return (tables, [file for file in found if file not in tables]) if tables else (found, [])


def _table(files: list[tuple[Path, Lines]], columns: Columns) -> Table:
    whole = Lines(files[0][1].names, commas=all(lines.commas for _, lines in files))
    names: list[str] = []
    for file, lines in files:
        if lines.names != whole.names:
            raise WeftError(
                f"{file} has the columns {', '.join(lines.names)}, not {', '.join(whole.names)}; make them alike"
            )
        if lacking := set(columns.inputs) - set(lines.names):
            lacked = ", ".join(sorted(lacking))
            raise WeftError(f"{file} lacks the columns {lacked}, which other files have; add them, or use --inputs")
        whole.faults |= {len(whole.rows) + row: why for row, why in lines.faults.items()}
        whole.rows += lines.rows
        names += [f"{file.name} line {line}" for line in lines.places]
    table = _arrow(whole)
    for name in columns.wanted:
        if name in whole.names and pa.types.is_floating(table.schema.field(name).type):
            whole.faults = _words_among_numbers(whole, name) | whole.faults
    return arrow_table(table, columns, lambda row: names[row], whole.faults)


def _words_among_numbers(lines: Lines, name: str) -> dict[int, str]:
    """Rows with a word where the column has numbers."""
    at = lines.names.index(name)
    odd = {
        row: cells[at] for row, cells in enumerate(lines.rows) if isinstance(cells[at], str) and not missing(cells[at])
    }
    read = _with_comma if lines.commas else as_number
    return {
        row: f"{name} is {cell[:40]!r}, where other rows have numbers"
        for row, cell in odd.items()
        if math.isnan(read(cell))
    }


def _read(file: Path) -> Lines:
    encoding = encoding_of(file)
    with file.open(encoding=encoding.name, errors=encoding.errors, newline="") as stream:
        lines = _read_stream(stream, file)
    lines.notes += [encoding.note] if encoding.note else []
    return lines


def _read_stream(stream: TextIO, file: Path) -> Lines:
    if file.suffix.lower() in {".jsonl", ".ndjson", ".json"}:
        return _read_json(stream, file)
    if file.suffix.lower() != ".txt":
        return _read_csv(stream, file)
    lines = Lines(["text"])
    for number, text in enumerate(stream, 1):
        lines.add(number, [text.rstrip("\r\n")])
    return lines


def _read_csv(stream: TextIO, file: Path) -> Lines:
    """The first row names the columns, unless all its cells are numbers."""
    told = SEPARATOR.fullmatch(stream.readline(MARKED))
    if told is None:
        stream.seek(0)
    delimiter = told[1] if told else _delimiter(stream, "\t" if file.suffix.lower() == ".tsv" else ",")
    rows = _rows(stream, delimiter, file, 2 if told else 1)
    line, head = next(rows, (0, []))
    if not head:
        raise WeftError(f"{file} is empty; give a file with rows in it")
    numbers = all(math.isfinite(as_number(cell)) for cell in head)
    lines = Lines([f"c{number}" for number in range(len(head))] if numbers else _names(head, file))
    lines.commas, lines.headed = delimiter != ",", not numbers
    if delimiter not in {",", "\t"}:
        lines.notes.append(f"the cells of {file.name} are separated by {DELIMITERS.get(delimiter, repr(delimiter))}")
    if numbers:
        lines.add(line, head)
    for line, row in rows:
        lines.add(line, row, _ragged(row, head))
    return lines


def _delimiter(stream: TextIO, usual: str) -> str:
    """What stands between cells: what cuts the first rows most evenly; the usual one where others do no better."""
    sample = list(itertools.islice(stream, SAMPLE))
    stream.seek(0)

    def evenness(delimiter: str) -> float:
        cells = [len(row) for row in _reader(iter(sample), delimiter) if row]
        return sum(count == cells[0] for count in cells) / len(cells) if cells and cells[0] > 1 else 0.0

    try:
        return max([usual, *DELIMITERS], key=evenness)
    except csv.Error:  # told with its line when the file is read
        return usual


def _reader(lines: Iterator[str], delimiter: str) -> Any:
    # In a file with tabs a quotation mark is a letter like any other.
    if delimiter == "\t":
        return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    return csv.reader(lines, delimiter=delimiter)


def _rows(stream: TextIO, delimiter: str, file: Path, line: int) -> Iterator[tuple[int, list[str]]]:
    """(line that it begins in, cells) of each row that is not blank."""
    csv.field_size_limit(_LIMIT)
    texts: list[str] = []  # that a row was read from

    def noted() -> Iterator[str]:
        for text in stream:
            texts.append(text)
            yield text

    reader = _reader(noted(), delimiter)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                if not _is_closed(texts, row, delimiter):
                    raise WeftError(f"{file} line {line}: a quotation mark in it is not closed; close or remove it")
                yield line, row
            line += len(texts)
            texts.clear()
    except csv.Error as error:
        raise WeftError(f"{file} line {line} cannot be cut into cells ({error}); repair or remove it") from error


def _is_closed(texts: list[str], row: list[str], delimiter: str) -> bool:
    """Whether a row ends where its lines do; the cell of an open quotation mark would take in another line as well."""
    if texts[-1].endswith(("\n", "\r")) and "\n" not in row[-1] and "\r" not in row[-1]:
        return True
    return sum(1 for _ in _reader(iter([*texts, "another"]), delimiter)) > 1


def _names(head: list[str], file: Path) -> list[str]:
    """The columns' names; one without a name, as spreadsheets leave at the end of a row, gets its number."""
    names = [cell.strip() or f"column {number}" for number, cell in enumerate(head, 1)]
    if any(map(_broken, names)):
        raise WeftError(f"the first line of {file} is not UTF-8 text; save the file as CSV in UTF-8")
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise WeftError(f"{file} has {count} columns called {name!r}; give each a name of its own")
    return names


def _ragged(row: list[str], head: list[str]) -> str | None:
    if len(row) == len(head):
        return None
    torn = "; a quotation mark in it may not be closed" if any("\n" in cell for cell in row) else ""
    return f"the row has {len(row)} cells where the header has {len(head)}{torn}"


def _read_json(stream: TextIO, file: Path) -> Lines:
    """An object a line; the first names the columns."""
    lines: Lines | None = None
    for number, text in enumerate(stream, 1):
        if not text.strip():
            continue
        row, fault = _object(text)
        if lines is None:
            if fault:
                raise WeftError(f"{file.name} line {number}: {fault}; weft reads one JSON object a line")
            lines = Lines(list(row))
            if any(map(_broken, lines.names)):
                raise WeftError(f"{file.name} line {number} has names that are no text; save the file in UTF-8")
        lacking = [name for name in lines.names if name not in row]
        fault = fault or (f"the row lacks {', '.join(lacking)}" if lacking else None)
        lines.add(number, [row.get(name) for name in lines.names], fault)
    if lines is None:
        raise WeftError(f"{file} is empty; give a file with rows in it")
    return lines


def _object(text: str) -> tuple[dict[str, Any], str | None]:
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        return {}, f"the line is not JSON ({error.msg})"
    except (ValueError, RecursionError):  # a number of more digits, or brackets in brackets, than Python takes
        return {}, "the line is JSON of no sensible size"
    return (row, None) if isinstance(row, dict) else ({}, "the line is not a JSON object")


def _arrow(lines: Lines) -> pa.Table:
    columns = {name: [row[at] for row in lines.rows] for at, name in enumerate(lines.names)}
    named = {name: _column(cells, lines.commas) for name, cells in columns.items()}
    return pa.table({name: column for name, column in named.items() if not _leftover(name, column)})


def _column(cells: list[Any], commas: bool) -> pa.Array:
    """Numbers, lists of numbers or words; of what is none of them (objects, lists of words) nothing."""
    given = [cell for cell in cells if cell is not None and cell != ""]
    nested = sum(isinstance(cell, list | dict) for cell in given)
    if nested * 2 <= len(given):
        cells = [None if isinstance(cell, list | dict) else cell for cell in cells]
        given = [cell for cell in given if not isinstance(cell, list | dict)]
    elif nested:
        lists = [
            [float(value) for value in cell] if isinstance(cell, list) and all(map(_is_number, cell)) else None
            for cell in cells
        ]
        some = any(cell is not None for cell in lists)
        return pa.array(lists, pa.list_(pa.float32())) if some else pa.nulls(len(cells))
    if given and all(isinstance(cell, bool) for cell in given):
        return pa.array([cell if isinstance(cell, bool) else None for cell in cells], pa.bool_())
    for read in (as_number, _with_comma) if commas else (as_number,):
        numbers = [read(cell) for cell in given]
        right = sum(number == number or str(cell).lower() == "nan" for cell, number in zip(given, numbers, strict=True))
        if given and right >= NUMBERS * len(given):
            whole = len(given) == len(cells) and all(n.is_integer() and abs(n) < _WHOLE for n in numbers)
            return pa.array([read(cell) for cell in cells], pa.int64() if whole else pa.float64())
    return pa.array(["" if cell is None else str(cell) for cell in cells], pa.string())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(as_number(value)) < 1e38


def _with_comma(cell: Any) -> float:
    """A number as most of Europe writes it: 1,5."""
    return as_number(cell.replace(",", ".") if isinstance(cell, str) and "." not in cell else cell)


def _leftover(name: str, column: pa.Array) -> bool:
    """Whether a column has neither a name nor content."""
    return name.startswith("column ") and pa.types.is_string(column.type) and not any(column.to_pylist())


def _broken(cell: str) -> bool:
    try:
        cell.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate
        return True
    return False
