"""Tables read for prediction: the columns that a network takes, and the others passed on; a bad row costs that row."""

from __future__ import annotations

import codecs
import csv
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from weft.data.config import Modality
from weft.data.sources.arrow import pixels_in
from weft.data.sources.columns import PAIRS, TEXTS
from weft.data.sources.delimited import ENDINGS as DELIMITED
from weft.data.sources.delimited import Lines, number_in, read_lines
from weft.data.sources.encoding import encoding_of
from weft.errors import WeftError
from weft.terminal import brief_list

ENDINGS = (".parquet", ".json", *(ending for ending in DELIMITED if ending != ".txt"))
FILES = ("image", "path", "file", "filename", "file_name", "image_path")  # columns that name pictures


@dataclass(frozen=True)
class Row:
    """One input: where it stands, what a network takes of it or why it takes none, and what else is in its row."""

    name: str
    raw: Any = None
    fault: str = ""
    others: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Wanted:
    """What a network takes: its modality, and the columns it was trained on, if these are known."""

    modality: Modality
    columns: tuple[str, ...] = ()


class RowTable:
    """A table whose input columns are known; its rows are read when they are asked for."""

    def __init__(self, file: Path, wanted: Wanted, stream: TextIO | BinaryIO | None = None) -> None:
        """`stream` is read in the place of the file: lines, or the bytes of Parquet."""
        self.file, self.wanted = file, wanted
        ending = file.suffix.lower()
        self.place = "item" if ending == ".json" else "line"
        self.content = file if stream is None else stream  # of Parquet
        if ending == ".json":
            stream = json_lines(file)
        self.lines = None if ending == ".parquet" else read_lines(file, cast("TextIO | None", stream))
        names = self.lines.names if self.lines is not None else parquet_names(file, self.content)
        self.inputs = input_columns(names, wanted, file, self.lines is None or self.lines.headed)
        self.others = [name for name in names if name not in self.inputs]

    @property
    def notes(self) -> list[str]:
        return [] if self.lines is None else self.lines.notes

    def __iter__(self) -> Iterator[Row]:
        return self._of_parquet() if self.lines is None else self._of_lines(self.lines)

    def _of_lines(self, lines: Lines) -> Iterator[Row]:
        for number, (place, cells) in enumerate(zip(lines.places, lines.rows, strict=True)):
            row = dict(zip(lines.names, cells, strict=True))
            yield self._row(f"{self.file.name} {self.place} {place}", row, lines.commas, lines.faults.get(number, ""))

    def _of_parquet(self) -> Iterator[Row]:
        number = 0
        try:
            with pq.ParquetFile(self.content) as opened:
                for batch in opened.iter_batches(1024):
                    for row in batch.to_pylist():
                        yield self._row(f"{self.file.name} row {number}", row, False)
                        number += 1
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise WeftError(f"{self.file} cannot be read after row {number} ({error}); write it anew") from error

    def _row(self, name: str, row: dict[str, Any], commas: bool, fault: str = "") -> Row:
        others = {other: row[other] for other in self.others}
        try:
            raw = None if fault else self._raw([row[column] for column in self.inputs], commas)
        except ValueError as error:
            return Row(name, None, str(error), others)
        return Row(name, raw, fault, others)

    def _raw(self, cells: list[Any], commas: bool) -> Any:
        if self.wanted.modality == "vector":
            return vector(cells, self.inputs, commas)
        if self.wanted.modality == "image":
            return self._picture(cells[0])
        for column, cell in zip(self.inputs, cells, strict=True):
            if cell is None or not str(cell).strip():
                raise ValueError(f"the text is empty (column {column})")
            if isinstance(cell, dict | list):
                raise ValueError(f"{column} is {json.dumps(cell, default=str)[:40]}, where the network takes a text")
        texts = [str(cell) for cell in cells]
        return texts[0] if len(texts) == 1 else (texts[0], texts[1])

    def _picture(self, cell: Any) -> Any:
        """The bytes of a picture, pixels, or the path of its file, from the table's folder on."""
        if isinstance(cell, dict):
            cell = cell.get("bytes") or cell.get("path")
        if isinstance(cell, bytes):
            return pixels_in(cell)
        if not isinstance(cell, str) or not cell:
            raise ValueError("there is no picture in the row")
        return self.file.parent / cell


def vector(cells: list[Any], names: Sequence[str], commas: bool) -> list[float]:
    """The numbers of a row, which may stand in one cell as a list."""
    if len(cells) == 1 and isinstance(cells[0], list):
        cells, names = cells[0], [f"place {place} of {names[0]}" for place in range(len(cells[0]))]
    found = [number_in(cell, commas) for cell in cells]
    for name, cell, number in zip(names, cells, found, strict=True):
        if not math.isfinite(number):
            shown = "empty" if cell is None or cell == "" else f"{str(cell)[:40]!r}"
            raise ValueError(f"{name} is {shown}, where the network takes a number")
    return found


def input_columns(names: list[str], wanted: Wanted, file: Path, headed: bool = True) -> list[str]:
    """The columns to read: those of the training table, by name; without names, by their number or their usual ones."""
    columns = list(wanted.columns)
    if not headed and wanted.modality == "vector" and len(names) == (len(columns) or len(names)):
        return names
    if columns and set(columns) <= set(names):
        return columns
    if not columns or wanted.modality == "image":
        return usual_columns(names, wanted, file)
    lacking = [column for column in columns if column not in names]
    word, it = ("column", "it") if len(lacking) == 1 else ("columns", "them")
    has = brief_list(names) if headed else f"{len(names)} columns without names"
    raise WeftError(
        f"{file} lacks the {word} {brief_list(lacking)}, which the network was trained on; it has {has}: "
        f"add {it}, or rename what is meant"
    )


def usual_columns(names: list[str], wanted: Wanted, file: Path) -> list[str]:
    """The columns that are called as such inputs are."""
    if wanted.modality == "vector":
        return names
    for pair in PAIRS if wanted.modality == "pair" else ():
        if set(pair) <= set(names):
            return list(pair)
    known = {"text": TEXTS, "image": (*wanted.columns, *FILES)}.get(wanted.modality, ())
    called = [name for name in names if name.lower() in known]
    if len(called) == 1 or (called and wanted.modality == "image"):
        return called[:1]
    if len(names) == 1 and wanted.modality != "pair":
        return names
    what = {"text": "the text", "pair": "the two texts", "image": "the picture, or its path"}[wanted.modality]
    usual = known[0] if known else " and ".join(PAIRS[0])
    raise WeftError(f"{file}: which column holds {what}? It has {brief_list(names)}; call the right one {usual}")


def json_items(file: Path) -> list[Any]:
    """The items of a JSON file, one at least: objects, or texts."""
    encoding = encoding_of(file)
    try:
        items = json.loads(file.read_text(encoding=encoding.name))
    except (ValueError, RecursionError) as error:
        raise WeftError(f"{file} is not readable as JSON ({error}); repair it, or call it .jsonl") from error
    kinds = {type(item) for item in items} if isinstance(items, list) else set()
    if kinds not in ({dict}, {str}):
        raise WeftError(f"{file} holds no list of objects, nor of texts; write one, or an object a line as .jsonl")
    return list(items)


def json_lines(file: Path) -> TextIO:
    """The objects of a JSON file as JSONL."""
    return io.StringIO("\n".join(map(json.dumps, json_items(file))))


def begins_list(file: Path) -> bool:
    """Whether a JSON file seems to hold a list; one that cannot be read is told when it is."""
    try:
        with file.open("rb") as stream:
            return stream.read(1024).removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
    except OSError:
        return True


def parquet_names(file: Path, content: Any) -> list[str]:
    try:
        return list(pq.read_schema(content).names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise WeftError(f"{file} is not a readable Parquet file ({error}); write or fetch it anew") from error


BETWEEN = ((".csv", ","), (".tsv", "\t"), (".csv", ";"))  # endings of tables, and what parts their cells
NAME = re.compile(r"[^\W\d][\w.-]*")  # as columns are called


def ending_of(seen: Sequence[str], wanted: Wanted) -> str | None:
    """The ending that text with these first lines would have as a file, if it is a table: the first line names the
    network's columns, or the second has as many cells as the first has names. Then the table lacks what is needed."""
    columns, first = set(wanted.columns), seen[0] if seen else ""
    if not columns:
        return None
    if first.lstrip().startswith("{"):
        try:
            return ".jsonl" if isinstance(json.loads(first), dict) else None
        except (ValueError, RecursionError):
            return None
    for ending, between in BETWEEN:
        if columns <= {cell.strip().strip('"') for cell in first.strip().split(between)}:
            return ending
    for ending, between in BETWEEN:
        names = names_in(first, between)
        pair = wanted.modality == "pair" and between == "\t" and len(names) == 2  # as such texts are written themselves
        if names and not pair and len(seen) > 1 and cells_in(seen[1], between) == len(names):
            return ending
    return None


def cells_in(line: str, between: str) -> int:
    try:
        return len(next(csv.reader([line], delimiter=between), []))
    except csv.Error:  # a cell of more letters than any has
        return 0


def is_header(line: str) -> bool:
    """Whether a line may name the columns of a table."""
    return any(names_in(line, between) for _, between in BETWEEN)


def names_in(line: str, between: str) -> list[str]:
    """The different names, two at least, that a line consists of; none where it is anything else."""
    names = [cell.strip('"') for cell in line.strip().split(between)]
    fine = len(names) > 1 and len(set(names)) == len(names) and all(map(NAME.fullmatch, names))
    return names if fine else []
