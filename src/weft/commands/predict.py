"""`weft predict`: what a trained network says of files, texts or rows; CSV or JSONL out, standard input in."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tyro.conf import Positional, UseAppendAction

from weft.errors import WeftError
from weft.terminal import CsvWriter, for_data

if TYPE_CHECKING:
    from weft.training.inference.predictor import Predictor

Item = tuple[str, Any]  # how an input is called, and the input itself


@dataclass(frozen=True)
class Arguments:
    """Predict: weft predict RUN cat.jpg dog.jpg, or --text "…", or lines (paths, texts, rows of numbers) on stdin"""

    run: Positional[Path]
    """Run folder."""
    files: Positional[tuple[Path, ...]] = ()
    """Images; text files (one text a line, or two with a tab between); CSV files (one row of numbers a line)."""
    text: UseAppendAction[tuple[str, ...]] = ()
    """A text to classify; may be repeated."""
    top: int = 3
    """Classes to name for each input, the likeliest first."""
    json: bool = False
    """Print JSON lines instead of CSV."""
    batch_size: int = 64
    """Inputs at a time."""
    encoder: Path | None = None
    """Where the frozen encoder lies that the network stands on, if it is not in the run's folder."""


def run(arguments: Arguments) -> int:
    """Print a line for each input, in their order."""
    if arguments.top < 1 or arguments.batch_size < 1:
        raise WeftError("--top and --batch-size must be at least 1")
    from weft.training.inference.predictor import chunks, load

    predictor = load(arguments.run, arguments.encoder)
    writer = Writer(for_data(), arguments.json, predictor, arguments.top)
    for items in chunks(inputs(arguments, predictor), arguments.batch_size):
        writer.write(items, predictor)
    writer.head()  # without inputs there is still a table, of no rows
    return 0


def inputs(arguments: Arguments, predictor: Predictor) -> Iterator[Item]:
    """All inputs with their names: files, texts, or standard input when there are neither."""
    if arguments.text and predictor.modality != "text":
        raise WeftError(f"this network takes {predictor.modality}s, not text; give files")
    for path in arguments.files:
        refuse_what_is_no_file(path)
    yield from of_lines(arguments.text, predictor)
    for path in arguments.files:
        yield from of_file(path, predictor)
    if not arguments.text and not arguments.files:
        yield from of_lines(standard_input(), predictor)


def refuse_what_is_no_file(path: Path) -> None:
    """Told before the first answer is written."""
    if path.is_dir():
        raise WeftError(f"{path} is a folder; give its files, for instance {path}/*")
    if not path.is_file():
        what = f"{path} is no regular file" if path.exists() else f"there is no file {path}"
        raise WeftError(f"{what}; give files that can be read")


def standard_input() -> Iterator[str]:
    """The lines of standard input, empty ones left out."""
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


def of_file(path: Path, predictor: Predictor) -> Iterable[Item]:
    """An image is one input; other files hold one a line."""
    if predictor.modality == "image":
        return [(str(path), path)]
    from weft.data.sources.encoding import encoding_of

    encoding = encoding_of(path)
    if encoding.note:
        print(encoding.note, file=sys.stderr)
    try:
        with path.open(encoding=encoding.name) as stream:
            lines = [line.rstrip("\n") for line in stream if line.strip()]
    except UnicodeDecodeError as error:
        raise WeftError(f"{path} is not UTF-8 text ({error}); convert it, with iconv for instance") from error
    return of_lines(lines, predictor)


def of_lines(lines: Iterable[str], predictor: Predictor) -> Iterator[Item]:
    """Lines as inputs of the network's kind: paths of images, texts, pairs of them, or numbers between commas."""
    for line in lines:
        if predictor.modality == "vector":
            yield line, numbers(line)
        elif predictor.card.pairs:
            yield line, pair(line)
        else:
            yield line, Path(line) if predictor.modality == "image" else line


def pair(line: str) -> tuple[str, str]:
    first, tab, second = line.partition("\t")
    if not tab:
        raise WeftError(f"this network reads pairs of texts; put a tab between the two of {line!r}")
    return first, second


def numbers(line: str) -> list[float]:
    try:
        return [float(word) for word in line.split(",")]
    except ValueError as error:
        raise WeftError(f"{line!r} is not a row of numbers; write for instance 0.5,2,7") from error


class Writer:
    """Writes predictions as CSV or JSONL."""

    def __init__(self, file: TextIO, as_json: bool, predictor: Predictor, top: int) -> None:
        self.file, self.json = file, as_json
        self.regression = predictor.card.task == "regression"
        self.top = min(top, len(predictor.classes))
        self.csv = CsvWriter(file)
        self.headed = as_json

    def head(self) -> None:
        """The first line of a table, once, and not before there is an answer: what is refused leaves nothing behind."""
        if not self.headed:
            ranks = [name for n in range(1, self.top + 1) for name in (f"class_{n}", f"probability_{n}")]
            self.csv.row(["input", *(["value"] if self.regression else ranks)])
            self.headed = True

    def write(self, items: list[Item], predictor: Predictor) -> None:
        """Predict and write one line an item."""
        names, raws = [name for name, _ in items], [raw for _, raw in items]
        if self.regression:
            found = predictor.predict(raws)
            self.head()
            for name, value in zip(names, found, strict=True):
                self._line(name, {"value": value}, [value])
            return
        values, classes = predictor.predict_proba(raws).topk(self.top, dim=1)
        self.head()
        for name, row, numbers in zip(names, values.tolist(), classes.tolist(), strict=True):
            ranked = [(predictor.classes[number], round(value, 6)) for number, value in zip(numbers, row, strict=True)]
            found = [{"class": label, "probability": value} for label, value in ranked]
            self._line(name, {"predictions": found}, [part for pair in ranked for part in pair])

    def _line(self, name: str, content: dict[str, Any], row: list[Any]) -> None:
        if self.json:
            print(json.dumps({"input": name, **content}, ensure_ascii=False), file=self.file)
        else:
            self.csv.row([name, *row])
