"""`weft predict`: what a trained network says of files, folders, tables, texts or rows; CSV or JSONL out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tyro.conf import Positional, UseAppendAction

from weft.errors import WeftError
from weft.terminal import CsvWriter, for_data

if TYPE_CHECKING:
    from weft.data.sources.rows import Row
    from weft.training.inference.predictor import Predictor

TOLD = 20  # bad inputs that are named; the others are counted


@dataclass(frozen=True)
class Arguments:
    """Predict: weft predict RUN cat.jpg photos/ new.csv, or --text "…", or - (or nothing) for standard input

    A table (CSV, TSV, JSONL, JSON, Parquet) is read by the columns that the run was trained on; its other columns are
    passed on. An input that cannot be read costs its own answer: it is named on standard error, and the exit code is 1.
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
    from weft.commands.given import inputs
    from weft.data.sources.rows import Wanted
    from weft.training.inference.predictor import chunks, load

    predictor = load(arguments.run, arguments.encoder)
    predictor.card.objective()  # refuses a network that has learnt no answers
    wanted = Wanted(predictor.takes, tuple(predictor.columns))
    others, rows = inputs(arguments.text, arguments.files, wanted)
    writer = Writer(for_data(), arguments, predictor, others)
    for part in chunks(rows, arguments.batch_size):
        writer.write(part)
    writer.head()  # without inputs there is still a table, of no rows
    if not writer.bad:
        return 0
    if writer.bad > 1:
        print(f"weft: {writer.bad:,} of {writer.count:,} inputs have no answer", file=sys.stderr)
    return 2 if writer.bad == writer.count else 1


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
            self.csv.row([row.name, *map(passed_on, passed), *answer[1]])


def passed_on(cell: Any) -> Any:
    """A cell of a table that was given, for a cell of CSV: what is nested in it as JSON."""
    if isinstance(cell, dict | list):
        return json.dumps(cell, ensure_ascii=False, default=str)
    return "" if cell is None else cell
