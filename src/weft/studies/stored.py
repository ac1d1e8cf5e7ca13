"""The JSON files of a study back from the disk, checked against the shape that they were written in."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from weft.stored import Damaged, parse, read_text, validated

T = TypeVar("T")


def read_stored(path: Path, shape: type[T], remedy: str) -> T:
    """The content of a file in its shape; `remedy` ends the sentence about one that has another."""
    return _read(path, shape, remedy)[1]


def read_whole(path: Path, shape: type[Any], remedy: str) -> dict[str, Any]:
    """All that a file holds which has at least this shape."""
    return dict(_read(path, shape, remedy)[0])


def _read(path: Path, shape: type[T], remedy: str) -> tuple[Any, T]:
    try:
        content = parse(read_text(path), path)
        return content, validated(shape, content, path)
    except Damaged as error:
        raise Damaged(f"{path} is damaged, or was not written by weft; {remedy} ({error})") from error
