"""Digests of content: they tell a changed source from the same one, and name entries of the cache."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

WHOLE = 1 << 30
"""Sources up to a gibibyte are hashed whole. Of the files of a larger one only size, head and tail are read: a change
in the middle of such a file that keeps its size goes unseen."""
_EDGE = 1 << 18


def digest(*parts: bytes | str) -> str:
    """32 hex digits for a sequence of byte strings; where one ends and the next begins matters."""
    state = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


def digest_files(files: Iterable[Path], root: Path) -> dict[str, str]:
    """Path below `root` -> digest of its content, in sorted order."""
    ordered = sorted(files)
    whole = sum(path.stat().st_size for path in ordered) <= WHOLE
    return {path.relative_to(root).as_posix(): _digest_file(path, whole) for path in ordered}


def _digest_file(path: Path, whole: bool) -> str:
    state = blake2b(digest_size=16)
    size = path.stat().st_size
    state.update(size.to_bytes(8, "little"))
    with path.open("rb") as stream:
        if whole or size <= 2 * _EDGE:
            while data := stream.read(1 << 20):
                state.update(data)
        else:
            state.update(stream.read(_EDGE))
            stream.seek(-_EDGE, 2)
            state.update(stream.read())
    return state.hexdigest()
