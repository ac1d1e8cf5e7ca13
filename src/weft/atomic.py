"""Files that are either the old or the new version, whole, whenever the machine stops: write aside, fsync, rename."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft.errors import WeftError

_under_way: set[int] = set()  # writes that have begun and not ended, by the number of their object


def writing() -> bool:
    """Whether a file, or a checkpoint, is being written right now: the wrong moment to end this process."""
    return bool(_under_way)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the file at `path`, atomically and durably."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with explained(path, aside):
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
        sync_folder(path.parent)


def write_json(path: Path, content: Any) -> None:
    """Replace the JSON file at `path`, atomically and durably."""
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    write_bytes(path, text.encode("utf-8", "backslashreplace"))  # as JSON writes halves of characters, of file names


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` survive a power cut; Windows opens no folders, and needs no such thing."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class explained:
    """A failed write removes what it left behind and becomes a sentence: what, why, and that nothing was lost."""

    def __init__(self, target: Path, aside: Path, remove: Callable[[Path], None] = Path.unlink) -> None:
        self.target, self.aside, self.remove = target, aside, remove

    def __enter__(self) -> None:
        _under_way.add(id(self))

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _under_way.discard(id(self))
        if not isinstance(error, OSError):
            return
        if self.aside.exists():
            self.remove(self.aside)
        full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
        reason = "the disk is full" if full else str(error.strerror or error)
        raise WeftError(
            f"could not write {self.target}: {reason}; what was there before is intact, so make room and resume"
        ) from error
