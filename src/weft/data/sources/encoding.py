"""How the bytes of a text file are to be read: UTF-8 unless a mark at its beginning, or its bytes, say otherwise."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from pathlib import Path

from weft.errors import WeftError

MARKS = {  # in this order: that of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
FOREIGN = {b"\x89PNG": "a PNG image", b"\xff\xd8\xff": "a JPEG image", b"GIF8": "a GIF image", b"%PDF": "a PDF file",
           b"PK\x03\x04": "a ZIP file or an Excel workbook", b"\x1f\x8b": "gzip", b"PAR1": "a Parquet file",
           b"SQLite": "a database", b"\xd0\xcf\x11\xe0": "an old Excel or Word file"}  # fmt: skip
_BEYOND = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
"""What a letter beyond ASCII looks like in UTF-8."""
_SAMPLE = 1 << 12  # bytes that are asked whether every second of them is zero


@dataclass(frozen=True)
class Encoding:
    """The name that Python gives to it, what is done with bytes that do not fit, and what the user should know."""

    name: str
    errors: str = "surrogateescape"  # they survive as lone surrogates, so that the row they are in can be named
    note: str = ""


def encoding_of(file: Path) -> Encoding:
    """The encoding of a text file."""
    if not file.is_file():  # a pipe would be read to its end, which may never come
        raise WeftError(f"{file} is not a regular file; copy its content into one")
    try:
        data = file.read_bytes()
    except OSError as error:
        raise WeftError(f"{file} cannot be read ({error.strerror}); check its permissions") from error
    for start, kind in FOREIGN.items():
        if data.startswith(start):
            raise WeftError(f"{file} is no text but {kind}; save it as text (CSV in UTF-8), or give it its own ending")
    for mark, name in MARKS.items():
        if data.startswith(mark):
            return Encoding(name, "surrogateescape" if name == "utf-8-sig" else "replace")
    if (wide := _unmarked(data[:_SAMPLE])) is not None:
        return Encoding(wide, "replace", f"{file.name} was read as {wide.upper()}, though nothing in it says so")
    return Encoding("cp1252", "strict", _latin(file)) if _is_latin(data) else Encoding("utf-8")


def _unmarked(sample: bytes) -> str | None:
    """UTF-16 without a mark: of Western text nearly every second byte is zero."""
    even, odd = sample[::2], sample[1::2]
    if len(sample) < 4 or max(even.count(0), odd.count(0)) < 0.7 * len(odd) or min(even.count(0), odd.count(0)) > 0:
        return None
    return "utf-16-le" if odd.count(0) else "utf-16-be"


def _is_latin(data: bytes) -> bool:
    """Whether text is of one byte a letter, as old Windows programs write it.

    Not where a single letter beyond ASCII is one of UTF-8: then the other bytes are damage, and their rows are named.
    """
    try:
        data.decode("utf-8")
        return False
    except UnicodeDecodeError:
        pass
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return _BEYOND.search(data) is None


def _latin(file: Path) -> str:
    return (
        f"{file.name} is not UTF-8 and was read as Latin-1 (Windows-1252); if letters look wrong, save it as UTF-8 anew"
    )
