"""What `weft predict` was given, as inputs one by one: texts, files, folders, tables or standard input."""

from __future__ import annotations

import io
import itertools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from weft.data.read.decode import ENDINGS as PICTURES
from weft.data.sources.encoding import encoding_of
from weft.data.sources.rows import ENDINGS as TABLES
from weft.data.sources.rows import Row, RowTable, Wanted, begins_list, ending_of, is_header, json_items
from weft.disk import data_files
from weft.errors import WeftError
from weft.terminal import brief_list

PIPED = Path("-")
IMAGES = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8")  # what JPEG, PNG and GIF begin with; others have a zero early on
PARQUET = b"PAR1"


def inputs(texts: tuple[str, ...], paths: tuple[Path, ...], wanted: Wanted) -> tuple[list[str], Iterator[Row]]:
    """The columns of tables that are passed on, and all inputs: texts, files, or else standard input.

    What cannot be read is refused where it is all there is, and else one input without an answer.
    """
    if texts and wanted.modality not in {"text", "pair"}:
        raise WeftError(f"this network takes {wanted.modality}s, not text; give files")
    if paths.count(PIPED) > 1:
        raise WeftError("standard input can be read once; give - once")
    paths = paths if texts else paths or (PIPED,)
    found = list(expanded(paths, wanted, len(texts) + len(paths) == 1))
    alone = len(texts) + len(found) == 1
    parts = [of_lines(texts, wanted, "--text"), *(part_of(given, wanted, alone) for given in found)]
    others = [name for part in parts for name in getattr(part, "others", ())]
    named = zip(["--text", *found], parts, strict=True)
    rows = parts if alone else [going_on(part, given) for given, part in named]
    return list(dict.fromkeys(others)), itertools.chain.from_iterable(rows)


def expanded(paths: tuple[Path, ...], wanted: Wanted, alone: bool) -> Iterator[Path | Row]:
    """Files, those of folders one by one; what is not there is an input without an answer, unless it is `alone`."""
    for path in paths:
        try:
            yield from [path] if path == PIPED else files_of(path, wanted)
        except WeftError as error:
            if alone:
                raise
            yield unread(path, error)


def part_of(given: Path | Row, wanted: Wanted, alone: bool) -> Iterable[Row]:
    """The inputs in a file, or on standard input."""
    if isinstance(given, Row):
        return [given]
    try:
        return of_input(wanted) if given == PIPED else opened(given, wanted)
    except WeftError as error:
        if alone:
            raise
        return [unread(given, error)]


def going_on(part: Iterable[Row], given: Path | Row | str) -> Iterator[Row]:
    """The inputs of a part up to where it cannot be read, which costs no other part its answers."""
    try:
        yield from part
    except WeftError as error:
        yield unread(given, error)


def unread(given: Path | Row | str, error: WeftError) -> Row:
    return Row("standard input" if given == PIPED else str(given), None, str(error))


# ---- Files and folders.


def files_of(path: Path, wanted: Wanted) -> list[Path]:
    """The file itself, or all of a folder that the network may take; what is not there is told before any answer."""
    if path.is_dir():
        return files_in(path, wanted)
    if not path.is_file():
        what = f"{path} is no regular file" if path.exists() else f"there is no file {path}"
        raise WeftError(f"{what}; give files or folders that can be read")
    return [path]


def files_in(folder: Path, wanted: Wanted) -> list[Path]:
    """Text files and tables, or pictures; tables beside pictures may list these, and are left out with the rest."""
    files = data_files(folder)
    alone = PICTURES if wanted.modality == "image" else (".txt",)
    single = [file for file in files if file.suffix.lower() in alone]
    tables = [file for file in files if is_table(file)]
    found = single or tables if wanted.modality == "image" else sorted([*single, *tables])
    if not found:
        raise WeftError(f"{folder} holds no file that this network takes ({brief_list([*alone, *TABLES], 20)})")
    others = set(files).difference(found)
    if told := [str(file.relative_to(folder)) for file in sorted(others) if not file.name.startswith(".")]:
        print(f"{folder}: left out {brief_list(told)}; give a file by its name to have it read", file=sys.stderr)
    return found


def is_table(file: Path) -> bool:
    """Whether a file of a folder holds rows; JSON of another form is there for other programs."""
    ending = file.suffix.lower()
    return ending in TABLES and (ending != ".json" or begins_list(file))


def opened(file: Path, wanted: Wanted) -> Iterable[Row]:
    """The inputs in a file; of a table the columns are known at once."""
    if file.suffix.lower() not in TABLES:
        return of_file(file, wanted)
    if file.suffix.lower() == ".json" and isinstance((texts := json_items(file))[0], str):
        return of_lines(texts, wanted, f"{file.name} item")
    table = RowTable(file, wanted)
    for note in table.notes:
        print(note, file=sys.stderr)
    return table


def of_file(path: Path, wanted: Wanted) -> Iterable[Row]:
    """An image is one input; other files hold one a line."""
    if wanted.modality == "image":
        return [Row(str(path), path)]
    encoding = encoding_of(path)
    if encoding.note:
        print(encoding.note, file=sys.stderr)
    try:
        with path.open(encoding=encoding.name) as stream:
            lines = [line.rstrip("\n") for line in stream]
    except UnicodeDecodeError as error:
        raise WeftError(f"{path} is not UTF-8 text ({error}); convert it, with iconv for instance") from error
    return of_lines(lines, wanted, f"{path.name} line")


# ---- Standard input.


def of_input(wanted: Wanted) -> Iterable[Row]:
    """What stands on standard input: a table, an image, or else a line an input."""
    head = first_bytes()
    if head.startswith(PARQUET):
        return RowTable(Path("standard input.parquet"), wanted, io.BytesIO(sys.stdin.buffer.read()))
    if wanted.modality == "image" and (head.startswith(IMAGES) or b"\0" in head):
        return [Row("standard input", sys.stdin.buffer.read())]
    lines = lines_of_input()
    seen = to_next(lines)
    if seen and is_header(seen[-1]):
        seen += to_next(lines)
    table = table_in(seen, lines, wanted)
    return of_lines(itertools.chain(seen, lines), wanted, "standard input line") if table is None else table


def first_bytes() -> bytes:
    """What standard input begins with, if it can be looked at without being taken."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None or stream.closed or stream.isatty() or not hasattr(stream, "peek"):
        return b""  # a look at a terminal would take away its end of file
    try:
        return bytes(stream.peek(16)[:16])
    except OSError:  # told when its lines are read
        return b""


def lines_of_input() -> Iterator[str]:
    """The lines of standard input as they come."""
    stream: Any = sys.stdin
    if stream is None or stream.closed:
        raise WeftError("standard input is closed; give files or --text, or lines on standard input")
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(encoding="utf-8-sig", errors="strict")  # whatever the locale says
    try:
        for line in stream:
            yield line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise WeftError(f"standard input is not UTF-8 text ({error}); convert it, with iconv for instance") from error
    except OSError as error:
        raise WeftError(f"standard input cannot be read ({error.strerror}); give files or --text") from error


def to_next(lines: Iterator[str]) -> list[str]:
    """The lines up to the next that is not blank."""
    seen = []
    for line in lines:
        seen.append(line)
        if line.strip():
            break
    return seen


def table_in(seen: list[str], lines: Iterator[str], wanted: Wanted) -> RowTable | None:
    """Standard input as a table, where its first lines, which were `seen`, are those of one."""
    ending = ending_of([line for line in seen if line.strip()], wanted)
    if ending is None:
        return None
    return RowTable(Path(f"standard input{ending}"), wanted, io.StringIO("\n".join([*seen, *lines]) + "\n"))


# ---- Lines.


def of_lines(lines: Iterable[str], wanted: Wanted, place: str) -> Iterator[Row]:
    """Lines as inputs of the network's kind: paths of images, texts, pairs of them, or numbers between commas.

    A blank line is an input without an answer, told by its `place` and number, so that answers keep step with lines.
    """
    reading = {"vector": numbers, "pair": pair, "image": Path, "text": str}[wanted.modality]
    for number, line in enumerate(lines, 1):
        try:
            yield Row(line, reading(line)) if line.strip() else Row(f"{place} {number}", None, "it is empty")  # type: ignore[operator]
        except ValueError as error:
            yield Row(line, None, str(error))


def pair(line: str) -> tuple[str, str]:
    first, tab, second = line.partition("\t")
    if not tab:
        raise ValueError("this network reads pairs of texts; put a tab between the two")
    return first, second


def numbers(line: str) -> list[float]:
    try:
        return [float(word) for word in line.split(",")]
    except ValueError as error:
        raise ValueError("it is not a row of numbers; write for instance 0.5,2,7") from error
