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
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TextIO

NARROWEST = 20  # columns of a terminal; some say that they have none
NEAREST = {"×": "x", "…": "...", "–": "-", "—": "-", "−": "-", "•": "*", "‖": "|", "±": "+-", "µ": "u", "²": "^2",
           "≤": "<=", "≥": ">=", "→": "->", "█": "#", "✗": "x", "’": "'", "“": '"', "”": '"', "\xa0": " ",
           "▁": "_", "▂": ".", "▃": ":", "▄": "-", "▅": "=", "▆": "+", "▇": "*"}  # fmt: skip
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
    made = Terminal(markup=False, emoji=False, **options)
    made.width = max(made.width, NARROWEST)
    return made


class Escaped:
    """A stream whose text is escaped on its way."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream  # the attribute by which rich finds the stream to write its own codes to

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(for_terminal(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


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
    found = (NEAREST.get(letter) or letter.encode("ascii", "backslashreplace").decode() for letter in letters)
    return "".join(found), error.end


# ---- Text from outside (labels, file names, texts, settings of strangers' runs), shown as text wherever it goes.

_UNSAFE = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff]|\r(?!\n)")
"""Control characters but for tabs and line ends, what turns the direction of writing, and halves of characters."""
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # how a cell begins that a spreadsheet would compute
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?%?")


def for_terminal(text: str) -> str:
    r"""Text that leaves a terminal as it is: what would act on it is written as \u001b, which JSON reads as well."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def whole(text: str) -> str:
    r"""Text that every file can hold: bytes of a file's name that are no letters are written as \udcff."""
    return text.encode("utf-8", "backslashreplace").decode()


def for_page(text: object) -> str:
    """Text for HTML and SVG, between tags or inside of an attribute."""
    return html.escape(for_terminal(str(text)))


def shown(value: Any) -> Any:
    """What a template is to escape: text without control characters; anything else, markup too, as it is."""
    return for_terminal(value) if type(value) is str else value


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
