"""The content cache: tensors that are slow to make, under a name made of content and transform.

An entry is one safetensors file, written beside its place and renamed into it, so that it is there whole or not at
all. Builders of the same entry queue at a lock that the system releases if its holder dies. A checksum in the header
finds damage; a damaged entry is made again. When the folder outgrows its limit, what was not used for longest goes.
"""

from __future__ import annotations

import math
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from weft.data.config import byte_count
from weft.disk import cache_folder
from weft.machine import Lock

Tensors = dict[str, Tensor]
LIMIT = 10 << 30
_ENDING = ".safetensors"
_NAME = re.compile(r"(tried-)?[0-9a-f]{32}\.(safetensors|part|lock|json)")  # digests name all that is kept here


@dataclass(frozen=True)
class Entry:
    """One entry, for listings."""

    path: Path
    size: int
    used: float  # seconds since the epoch
    about: str


class Filling:
    """The seconds that this process has spent on making entries, or on waiting for others that did: what is made once
    is not charged to a run's time."""

    def __init__(self) -> None:
        self.seconds, self._deep = 0.0, False

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count what happens within; an entry that is made for another one is part of it."""
        if self._deep:
            yield
            return
        self._deep, started = True, time.perf_counter()
        try:
            yield
        finally:
            self._deep = False
            self.seconds += time.perf_counter() - started


FILLING = Filling()


class Cache:
    """A folder of entries; by default $WEFT_CACHE or ~/.cache/weft, of $WEFT_CACHE_LIMIT (bytes, 500M, 2G) or 10G."""

    def __init__(self, folder: Path | None = None, limit: int | None = None) -> None:
        self.folder = folder or cache_folder()
        self.limit = limit if limit is not None else _limit(os.environ.get("WEFT_CACHE_LIMIT", "").strip())

    def get(self, key: str, about: str, build: Callable[[], Tensors]) -> Tensors:
        """The entry `key`, built and stored if it is not there; `about` says what it is, for listings."""
        return self.grow(key, about, lambda found: True, lambda found: build())

    def grow(
        self, key: str, about: str, enough: Callable[[Tensors], bool], build: Callable[[Tensors | None], Tensors]
    ) -> Tensors:
        """The entry `key` if it is `enough`; else what `build` makes of it, or of nothing, takes its place."""
        path = self.folder / f"{key}{_ENDING}"
        if (found := _load(path)) is not None and enough(found):
            return found
        building = False
        with FILLING.counted():  # also while somebody else makes it
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                with self._lock(key):
                    found = _load(path)
                    if found is None or not enough(found):  # nobody made it while we waited
                        building = True
                        found = build(found)
                        building = False
                        self._store(path, found, about)
                    return found
            except (OSError, SafetensorError) as error:
                if building:  # its trouble is not that of the cache
                    raise
                warnings.warn(f"the cache {self.folder} cannot be used ({error}); going on without", stacklevel=2)
                return found if found is not None and enough(found) else build(found)

    def __contains__(self, key: str) -> bool:
        """Whether there is an entry, damaged perhaps."""
        return (self.folder / f"{key}{_ENDING}").is_file()

    def entries(self) -> list[Entry]:
        """All entries, the least recently used first."""
        found = []
        for path in self._own(_ENDING):
            try:
                status = path.stat()
                with safe_open(path, "pt") as file:
                    about = (file.metadata() or {}).get("about", "")
            except (OSError, SafetensorError):
                about, status = "damaged", path.stat()
            found.append(Entry(path, status.st_size, status.st_mtime, about))
        return sorted(found, key=lambda entry: (entry.used, entry.path))

    def clear(self) -> int:
        """Remove all entries and what killed builders left behind; how many bytes that freed."""
        freed = 0
        for path in self._own():
            freed += path.stat().st_size
            path.unlink(missing_ok=True)
        return freed

    def _own(self, ending: str = "") -> list[Path]:
        """The files of the folder that weft wrote, by their names."""
        return [path for path in self.folder.glob(f"*{ending}") if _NAME.fullmatch(path.name)]

    def _store(self, path: Path, tensors: Tensors, about: str) -> None:
        part = path.with_suffix(".part")  # a killed builder's remains are overwritten: we hold the lock
        tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
        save_file(tensors, part, metadata={"about": about, "checksum": _checksum(tensors)})
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
        self._trim(path)

    def _trim(self, latest: Path) -> None:
        """Remove what was not used for longest until the folder fits; files in use stay readable to their readers."""
        entries = self.entries()
        excess = sum(entry.size for entry in entries) - self.limit
        for entry in entries:
            if excess > 0 and entry.path != latest:
                entry.path.unlink(missing_ok=True)
                excess -= entry.size

    @contextmanager
    def _lock(self, key: str) -> Iterator[None]:
        # A lock for each entry: one builder may need another entry, and two that share a lock would wait forever.
        with Lock(self.folder / f"{key}.lock").acquire(math.inf):
            yield


def _limit(text: str) -> int:
    """The number of bytes that the environment names, or the usual one."""
    return byte_count(text, "WEFT_CACHE_LIMIT") if text else LIMIT


def _load(path: Path) -> Tensors | None:
    """The tensors of an entry, mapped from its file; None if it is not there, or damaged (and then removed)."""
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
            expected = (file.metadata() or {}).get("checksum")
    except FileNotFoundError:
        return None
    except (SafetensorError, OSError):
        tensors, expected = {}, ""
    sound = expected == _checksum(tensors)
    with suppress(OSError):  # on a disk that is only read, entries serve as they are
        if sound:
            os.utime(path)
        else:
            path.unlink(missing_ok=True)
    return tensors if sound else None


def _checksum(tensors: Tensors) -> str:
    state = blake2b(digest_size=16)
    for name, tensor in sorted(tensors.items()):
        state.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
        state.update(tensor.contiguous().view(-1).view(torch.uint8).numpy().data)
    return state.hexdigest()


# ---- Digests of content: they tell a changed source from the same one, and name entries of the cache.

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


def digest_files(files: Iterable[Path], root: Path, whole: bool = False) -> dict[str, str]:
    """Path below `root` -> digest of its content, in sorted order; of much of it the edges, unless it is to be read
    `whole`."""
    ordered = sorted(files)
    whole = whole or sum(path.stat().st_size for path in ordered) <= WHOLE
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
