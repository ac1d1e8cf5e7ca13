"""Files that weft, or someone else, stored, back from the disk: bounded in size, and any damage is one sentence.

A run folder may come from anywhere. What is read here is data: nothing in it is executed, and no type, number or depth
of it can bring more about than a `Damaged` that names the file and the field.
"""

from __future__ import annotations

import json
import reprlib
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from weft.errors import WeftError

LIMIT = 256 << 20  # bytes of a file that is read whole: records with long curves, tokenizers with large vocabularies

_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}


class Damaged(WeftError):
    """A stored file whose content is not what was written, or what can be used."""


def read_bytes(path: Path, limit: int = LIMIT) -> bytes:
    """The content of a file, which must be a plain one and no longer than `limit`."""
    try:
        if path.exists() and not path.is_file():
            raise Damaged(f"{path} is not a plain file; remove it, or restore the file that was there")
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise Damaged(f"cannot read {path}: {error.strerror}; give a file that can be read") from error
    if len(content) > limit:
        raise Damaged(f"{path} has more than the {limit >> 20} MiB that such a file may have; restore it")
    return content


def read_text(path: Path, limit: int = LIMIT) -> str:
    """The text of a file in UTF-8."""
    try:
        return read_bytes(path, limit).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Damaged(f"{path} is damaged: byte {error.start} is not UTF-8; restore it") from error


def read_object(path: Path, limit: int = LIMIT) -> dict[str, Any]:
    """The JSON object in a file."""
    return parse_object(read_text(path, limit), path)


def parse_object(text: str, path: Path) -> dict[str, Any]:
    """The JSON object that a text from the file `path` is."""
    content = parse(text, path)
    if not isinstance(content, dict):
        raise Damaged(f"{path} is damaged (it holds no JSON object); restore it")
    return content


def parse(text: str, path: Path) -> Any:
    """The JSON that a text from the file `path` is."""
    try:
        content = json.loads(text)
        if "\\ud" in text.lower():
            json.dumps(content, ensure_ascii=False).encode()  # half a letter cannot be written or shown
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{path} is damaged ({brief(error)}); restore it") from error
    return content


def validated(kind: Any, values: Any, where: object) -> Any:
    """The `values` as a dataclass or typed dictionary; what does not fit is a sentence with the field's name."""
    try:
        return adapter(kind).validate_python(values)
    except ValidationError as error:
        raise Damaged(f"{where}: {complaint(error)}") from error
    except (WeftError, RecursionError, OverflowError) as error:
        raise Damaged(f"{where}: {brief(error)}") from error


def adapter(kind: Any) -> TypeAdapter[Any]:
    """What checks values of a kind; making one takes longer than using it, so they are kept."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def complaint(error: ValidationError) -> str:
    """The first complaint of pydantic as one line: which field, what is wrong, what it was given."""
    first = error.errors(include_url=False)[0]
    place = ".".join(
        str(part) for part in first["loc"] if not str(part).startswith(("constrained", "literal", "function"))
    )
    reason = first["msg"].removeprefix("Value error, ")
    return f"{place}: {reason} (given: {reprlib.repr(first['input'])})" if place else reason


def brief(error: BaseException) -> str:
    """The first line of an error's message, cut where it is long."""
    line = (str(error).strip() or type(error).__name__).partition("\n")[0]
    return line if len(line) <= 200 else f"{line[:199]}…"
