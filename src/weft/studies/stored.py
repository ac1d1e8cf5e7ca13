"""The JSON files of a study back from the disk, checked against the shape that they were written in."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter
from pydantic_core import from_json

from weft.errors import WeftError

T = TypeVar("T")


class Damaged(WeftError):
    """A file that is cut off, holds something else, or was not written by weft."""


def read_stored(path: Path, shape: type[T], remedy: str) -> T:
    """The content of a file in its shape; `remedy` ends the sentence about one that has another."""
    try:
        return TypeAdapter(shape).validate_python(from_json(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise Damaged(f"{path} is damaged, or was not written by weft; {remedy}") from error


def read_whole(path: Path, shape: type[Any], remedy: str) -> dict[str, Any]:
    """All that a file holds which has at least this shape."""
    read_stored(path, shape, remedy)
    return dict(from_json(path.read_bytes()))
