"""Standard output and the text on it: nothing that comes from outside acts on the terminal, and no letter ends a verb.

`console()` is rich's for tables and colours. Plain `print` is made safe for a whole verb by `text_is_text`.
"""

from __future__ import annotations

import codecs
import csv
import html
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, TextIO

NARROWEST = 20  # columns of a terminal; some say that they have none
NEAREST = {"×": "x", "…": "...", "–": "-", "—": "-", "−": "-", "•": "*", "‖": "|", "±": "+-", "µ": "u", "²": "^2",
           "≤": "<=", "≥": ">=", "→": "->", "█": "#", "✗": "x", "’": "'", "“": '"', "”": '"', "\xa0": " ",
           "▁": "_", "▂": ".", "▃": ":", "▄": "-", "▅": "=", "▆": "+", "▇": "*",
           "\u2068": "", "\u2069": ""}  # fmt: skip
"""What stands for letters of weft's own sentences where the terminal has ASCII only."""


def console(**options: Any) -> Any:
    """A rich console on which text is text: no markup, no emoji codes, no control characters."""
    from rich.console import Console
    from rich.text import Text

    class Terminal(Console):
        def render_str(self, text: str, **others: Any) -> Text:
            return super().render_str(for_terminal(text), **others)

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # which the command takes for an end, where rich would exit with 1

    options = {"file": plain(sys.stdout), "highlight": False, **options}
    options["file"] = Isolating(options["file"])  # once it is cut into lines and columns
    made = Terminal(markup=False, emoji=False, **options)
    made.width = max(made.width, NARROWEST)
    return made


class Escaped:
    """A stream whose text is escaped on its way."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream  # the attribute by which rich finds the stream to write its own codes to

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(for_stream(text, self.rich_proxied_file))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


class Isolating:
    """A stream on which, where it is a terminal, words from right to left turn nothing around them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(isolated(text) if self._stream.isatty() else text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def text_is_text() -> Iterator[None]:
    """While this lasts, whatever is printed is escaped; rich, which has codes of its own to write, uses `console`."""
    with redirect_stdout(_escaped(sys.stdout)), redirect_stderr(_escaped(sys.stderr)):
        yield


def plain(stream: Any) -> Any:
    """The stream behind an escaped one."""
    return getattr(stream, "rich_proxied_file", stream)


def for_data() -> Any:
    """Where CSV goes: standard output, letter for letter unless a terminal is to show it."""
    return sys.stdout if sys.stdout.isatty() else plain(sys.stdout)


def take_any_letter() -> None:
    """Let standard output write what its encoding lacks in other letters, rather than fail; closed, it takes all."""
    codecs.register_error("weft", _nearest)
    _fill_closed()
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 (it lasts as long as the process)
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="weft")


def _fill_closed() -> None:
    """Put the empty device in the place of closed streams: the next file opened would become one of them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free


def _escaped(stream: Any) -> Any:
    return stream if isinstance(stream, Escaped) else Escaped(stream)


def _nearest(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    written = (NEAREST.get(letter, letter).encode("ascii", "backslashreplace").decode() for letter in letters)
    return "".join(written), error.end


# ---- Text from outside (labels, file names, texts, settings of strangers' runs), shown as text wherever it goes.

_UNSAFE = re.compile(
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff]|\r(?!\n)"
)
"""Control characters but for tabs and line ends, what turns the direction of writing, and halves of characters."""
_RIGHT_TO_LEFT = (
    "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"  # Hebrew, Arabic, …
)
_TURNED = re.compile(f"[{_RIGHT_TO_LEFT}](?:[{_RIGHT_TO_LEFT}\\d '-]*[{_RIGHT_TO_LEFT}])?")
ISOLATE, END = "\u2068", "\u2069"
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # how a cell begins that a spreadsheet would compute
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?%?")


def for_terminal(text: str) -> str:
    r"""Text that leaves a terminal as it is: what would act on it is written as \u001b, which JSON reads as well."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def isolated(text: str) -> str:
    """Text whose words from right to left turn nothing around them: numbers and names beside them keep their places.

    None of weft's own words are such, so these are from outside, wherever they stand in a sentence.
    """
    return text if text.isascii() else _TURNED.sub(lambda found: f"{ISOLATE}{found[0]}{END}", text)


def for_stream(text: str, stream: Any) -> str:
    """Text for standard output or errors: for people where it is a terminal, letter for letter for programs."""
    return isolated(for_terminal(text)) if stream.isatty() else for_terminal(text)


def complain(sentence: str) -> None:
    """One line on standard error, which may be closed or full as well."""
    with suppress(OSError):
        print("weft: " + for_stream(" ".join(sentence.split()), sys.stderr), file=sys.stderr, flush=True)


def whole(text: str) -> str:
    r"""Text that every file can hold: bytes of a file's name that are no letters are written as \udcff."""
    return text.encode("utf-8", "backslashreplace").decode()


def for_page(text: object) -> str:
    """Text for HTML and SVG, between tags or inside of an attribute."""
    return html.escape(isolated(for_terminal(str(text))))


def shown(value: Any) -> Any:
    """What a template is to escape: text without control characters; anything else, markup too, as it is."""
    return isolated(for_terminal(value)) if type(value) is str else value


def brief_list(words: Iterable[str], most: int = 8) -> str:
    """Words for a sentence, the first few of them where they are many."""
    words = list(words)
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")


def how_many(number: float, one: str, many: str = "") -> str:
    """A number with what it counts: 1 run, 1,200 runs, 2.5 epochs; `many` where that is not `one` and an s."""
    shown = f"{number:.3g}" if isinstance(number, float) else f"{number:,}"
    return f"{shown} {one if shown == '1' else many or f'{one}s'}"


def for_spreadsheet(cell: Any) -> Any:
    """A cell that a spreadsheet shows rather than computes: a formula gets an apostrophe before it, a number stays."""
    if isinstance(cell, str) and cell.lstrip(" ").startswith(_FORMULA) and not _NUMBER.fullmatch(cell):
        return "'" + cell
    return cell


class CsvWriter:
    """csv.writer for files that people open in spreadsheets."""

    def __init__(self, file: TextIO) -> None:
        self._writer = csv.writer(file, lineterminator="\n")

    def row(self, cells: Iterable[Any]) -> None:
        """Write one row."""
        self._writer.writerow([for_spreadsheet(cell) for cell in cells])
