"""Text from outside (labels, file names, texts, settings of strangers' runs), shown as text wherever it goes.

Needs the standard library alone, so that every part of weft may use it.
"""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Iterable
from typing import Any, TextIO

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
