"""`weft predict`: what a trained network says of files, folders, tables, texts or rows; CSV or JSONL out."""

from __future__ import annotations

import io
import itertools
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tyro.conf import Positional, UseAppendAction

from weft.errors import WeftError
from weft.terminal import CsvWriter, brief_list, for_data

if TYPE_CHECKING:
    from weft.data.sources.rows import Row, RowTable, Wanted
    from weft.training.inference.predictor import Predictor

PIPED = Path("-")
IMAGES = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8")  # what JPEG, PNG and GIF begin with; others have a zero early on
TOLD = 20  # bad inputs that are named; the others are counted


@dataclass(frozen=True)
class Arguments:
    """Predict: weft predict RUN cat.jpg photos/ new.csv, or --text "…", or - (or nothing) for standard input

    A table (CSV, TSV, JSONL, Parquet) is read by the columns that the run was trained on; its other columns are passed
    on. An input that cannot be read costs its own answer: it is named on standard error, and the exit code is 1.
    """

    run: Positional[Path]
    """Run folder, or a file that `weft export --onnx` wrote."""
    files: Positional[tuple[Path, ...]] = ()
    """Images, tables, text files (one text a line, or two with a tab between), or folders of them; - reads lines, or a
    table, or the bytes of one image, from standard input."""
    text: UseAppendAction[tuple[str, ...]] = ()
    """A text to classify; may be repeated."""
    top: int = 3
    """Classes to name for each input, the likeliest first."""
    probs: bool = False
    """The likeliest class and the probability of every class instead, a column each."""
    json: bool = False
    """Print JSON lines instead of CSV."""
    batch_size: int = 64
    """Inputs at a time."""
    encoder: Path | None = None
    """Where the frozen encoder lies that the network stands on, if it is not in the run's folder."""


def run(arguments: Arguments) -> int:
    """Print a line for each input, in their order; 1 if some could not be answered."""
    if arguments.top < 1 or arguments.batch_size < 1:
        raise WeftError("--top and --batch-size must be at least 1")
    from weft.training.inference.predictor import chunks, load

    predictor = load(arguments.run, arguments.encoder)
    predictor.card.objective()  # refuses a network that has learnt no answers
    others, rows = inputs(arguments, predictor)
    writer = Writer(for_data(), arguments, predictor, others)
    for part in chunks(rows, arguments.batch_size):
        writer.write(part)
    writer.head()  # without inputs there is still a table, of no rows
    if not writer.bad:
        return 0
    if writer.bad > 1:
        print(f"weft: {writer.bad:,} of {writer.count:,} inputs have no answer", file=sys.stderr)
    return 2 if writer.bad == writer.count else 1


# ---- From what was given to inputs one by one.


def inputs(arguments: Arguments, predictor: Predictor) -> tuple[list[str], Iterator[Row]]:
    """The columns of tables that are passed on, and all inputs: texts, files, or else standard input."""
    if arguments.text and predictor.modality != "text":
        raise WeftError(f"this network takes {predictor.modality}s, not text; give files")
    wanted = wanted_by(predictor)
    if arguments.files.count(PIPED) > 1:
        raise WeftError("standard input can be read once; give - once")
    parts: list[Iterable[Row]] = [of_lines(arguments.text, wanted)]
    for path in arguments.files if arguments.text else arguments.files or (PIPED,):
        files = [path] if path == PIPED else files_of(path, wanted)
        parts += [of_input(wanted) if file == PIPED else opened(file, wanted) for file in files]
    others = [name for part in parts for name in getattr(part, "others", ())]
    return list(dict.fromkeys(others)), itertools.chain.from_iterable(parts)


def of_input(wanted: Wanted) -> Iterable[Row]:
    """What stands on standard input: a table, an image, or else a line an input."""
    if wanted.modality == "image" and (image := piped_image()):
        from weft.data.sources.rows import Row

        return [Row("standard input", image)]
    from weft.data.sources.rows import is_header

    lines = lines_of_input()
    seen = list(itertools.islice(lines, 1))
    if seen and is_header(seen[0]):
        seen += itertools.islice(lines, 1)
    table = table_in(seen, lines, wanted)
    return of_lines(itertools.chain(seen, lines), wanted) if table is None else table


def piped_image() -> bytes:
    """Standard input, if it is an image and no text."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None or stream.closed or stream.isatty() or not hasattr(stream, "peek"):
        return b""  # a look at a terminal would take away its end of file
    head = stream.peek(16)[:16]
    return stream.read() if head.startswith(IMAGES) or b"\0" in head else b""


def wanted_by(predictor: Predictor) -> Wanted:
    from weft.data.sources.rows import Wanted

    return Wanted(predictor.takes, tuple(predictor.columns))


def files_of(path: Path, wanted: Wanted) -> list[Path]:
    """The file itself, or all of a folder that the network may take; what is not there is told before any answer."""
    if path.is_dir():
        from weft.data.read.decode import ENDINGS as PICTURES
        from weft.data.sources.rows import ENDINGS as TABLES
        from weft.disk import data_files

        alone = PICTURES if wanted.modality == "image" else (".txt",)
        files = data_files(path)
        found = [file for file in files if file.suffix.lower() in alone]
        found = found or [file for file in files if file.suffix.lower() in TABLES]
        if not found:
            raise WeftError(f"{path} holds no file that this network takes ({brief_list([*alone, *TABLES], 20)})")
        return found
    if not path.is_file():
        what = f"{path} is no regular file" if path.exists() else f"there is no file {path}"
        raise WeftError(f"{what}; give files or folders that can be read")
    return [path]


def opened(file: Path, wanted: Wanted) -> Iterable[Row]:
    """The inputs in a file; of a table the columns are known at once."""
    from weft.data.sources.rows import ENDINGS, RowTable

    if file.suffix.lower() not in ENDINGS:
        return of_file(file, wanted)
    table = RowTable(file, wanted)
    for note in table.notes:
        print(note, file=sys.stderr)
    return table


def lines_of_input() -> Iterator[str]:
    """The lines of standard input as they come; empty ones are left out."""
    stream: Any = sys.stdin
    if stream is None or stream.closed:
        raise WeftError("standard input is closed; give files or --text, or lines on standard input")
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(encoding="utf-8-sig", errors="strict")  # whatever the locale says
    try:
        for line in stream:
            if line.rstrip("\r\n"):
                yield line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise WeftError(f"standard input is not UTF-8 text ({error}); convert it, with iconv for instance") from error
    except OSError as error:
        raise WeftError(f"standard input cannot be read ({error.strerror}); give files or --text") from error


def table_in(seen: list[str], lines: Iterator[str], wanted: Wanted) -> RowTable | None:
    """Standard input as a table, where its first lines, which were `seen`, are those of one."""
    from weft.data.sources.rows import RowTable, ending_of

    ending = ending_of(seen, wanted)
    if ending is None:
        return None
    return RowTable(Path(f"standard input{ending}"), wanted, io.StringIO("\n".join([*seen, *lines]) + "\n"))


def of_file(path: Path, wanted: Wanted) -> Iterable[Row]:
    """An image is one input; other files hold one a line."""
    from weft.data.sources.rows import Row

    if wanted.modality == "image":
        return [Row(str(path), path)]
    from weft.data.sources.encoding import encoding_of

    encoding = encoding_of(path)
    if encoding.note:
        print(encoding.note, file=sys.stderr)
    try:
        with path.open(encoding=encoding.name) as stream:
            lines = [line.rstrip("\n") for line in stream if line.strip()]
    except UnicodeDecodeError as error:
        raise WeftError(f"{path} is not UTF-8 text ({error}); convert it, with iconv for instance") from error
    return of_lines(lines, wanted)


def of_lines(lines: Iterable[str], wanted: Wanted) -> Iterator[Row]:
    """Lines as inputs of the network's kind: paths of images, texts, pairs of them, or numbers between commas."""
    from weft.data.sources.rows import Row

    reading = {"vector": numbers, "pair": pair, "image": Path, "text": str}[wanted.modality]
    for line in lines:
        try:
            yield Row(line, reading(line))  # type: ignore[operator]
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


# ---- Answers.

Answer = tuple[dict[str, Any], list[Any]]  # for JSON, and the cells of a row


class Writer:
    """Writes predictions as CSV or JSONL."""

    def __init__(self, file: TextIO, arguments: Arguments, predictor: Predictor, others: list[str]) -> None:
        self.file, self.json, self.probs = file, arguments.json, arguments.probs
        self.predictor, self.others = predictor, others
        self.regression = predictor.card.task == "regression"
        if self.regression and self.probs:
            raise WeftError("--probs is for classes, and this network answers with numbers; leave it out")
        self.top = min(arguments.top, len(predictor.classes))
        self.csv = CsvWriter(file)
        self.headed = self.json
        self.count = self.bad = 0

    @property
    def titles(self) -> list[str]:
        """The columns of the answers."""
        if self.regression:
            return ["value"]
        if self.probs:
            return ["class", *(f"probability_{name}" for name in self.predictor.classes)]
        return [name for n in range(1, self.top + 1) for name in (f"class_{n}", f"probability_{n}")]

    def head(self) -> None:
        """The first line of a table, once, and not before there is an answer: what is refused leaves nothing behind."""
        if not self.headed:
            taken = {"input", *self.titles}
            passed = [f"given_{name}" if name in taken else name for name in self.others]
            self.csv.row(["input", *passed, *self.titles])
            self.headed = True

    def write(self, rows: list[Row]) -> None:
        """Predict and write a line for each."""
        answers = self.answers([row for row in rows if not row.fault])
        self.head()
        for row in rows:
            found = row.fault or next(answers)
            self.count += 1
            if isinstance(found, str):
                self.bad += 1
                if self.bad <= TOLD:
                    said = found if found.startswith(row.name) else f"{row.name}: {found}"
                    print(f"weft: {said}", file=sys.stderr)
            self._line(row, ({"error": found}, [""] * len(self.titles)) if isinstance(found, str) else found)

    def answers(self, rows: list[Row]) -> Iterator[Answer | str]:
        """What the network says of each, or why it can say nothing: a bad one must not cost the others."""
        try:
            return iter(self.ask(rows))
        except WeftError:
            faults = [self.predictor.fault(row.raw) for row in rows]
            if not any(faults):
                raise  # it is the network's own
            good = iter(self.ask([row for row, fault in zip(rows, faults, strict=True) if not fault]))
            return (fault or next(good) for fault in faults)

    def ask(self, rows: list[Row]) -> list[Answer]:
        raws = [row.raw for row in rows]
        if self.regression:
            return [({"value": value}, [value]) for value in self.predictor.predict(raws)]
        return [self.answer_of(line) for line in self.predictor.predict_proba(raws).tolist()]

    def answer_of(self, probabilities: list[float]) -> Answer:
        """The answer in the form that was asked for."""
        order = sorted(range(len(probabilities)), key=lambda number: -probabilities[number])
        named = [(name, round(value, 6)) for name, value in zip(self.predictor.classes, probabilities, strict=True)]
        ranked = [named[number] for number in order]
        if self.probs:
            return {"class": ranked[0][0], "probabilities": dict(named)}, [ranked[0][0], *(p for _, p in named)]
        first = ranked[: self.top]
        listed = [{"class": name, "probability": value} for name, value in first]
        return {"predictions": listed}, [part for found in first for part in found]

    def _line(self, row: Row, answer: Answer) -> None:
        if self.json:
            content = {"input": row.name, **({"row": row.others} if row.others else {}), **answer[0]}
            print(json.dumps(content, ensure_ascii=False, default=str), file=self.file)
        else:
            passed = [row.others.get(name, "") for name in self.others]
            self.csv.row([row.name, *("" if cell is None else cell for cell in passed), *answer[1]])
