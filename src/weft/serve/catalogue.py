"""What there is to serve: the runs and comparisons below some folders, each under a name that fits into a URL.

Only folders that weft wrote are entries, and links are not followed: nothing outside the folders can be reached. No
torch here.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from weft.disk import RUN, STUDY, is_run, is_study
from weft.errors import WeftError, nearest

Kind = Literal["run", "comparison"]
AGE = 2.0  # seconds for which the folders are not walked through again


class NotServed(WeftError):
    """There is no such run, comparison or file."""


@dataclass(frozen=True)
class Entry:
    """A run or a comparison."""

    name: str
    """unique among all entries, of letters, digits, dots, dashes and underscores"""
    kind: Kind
    path: Path
    """its folder, without links"""
    long_name: str
    """the folders that lead to it, joined by two dashes: it stays when another run of the same name comes"""

    def file(self, *parts: str) -> Path:
        """A file in the folder; one that is not there, or that leads out of it, is refused."""
        try:
            found = self.path.joinpath(*parts).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            found = None
        if found is None or not found.is_relative_to(self.path) or not found.is_file():
            raise NotServed(f"{self.name} has no file {'/'.join(parts)}")
        return found


class Catalogue:
    """The entries below some folders, as they are now: looked for again when they were not for two seconds."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(folder.resolve() for folder in folders)
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._read = -AGE

    def entries(self) -> list[Entry]:
        """All of them, by name."""
        with self._lock:
            if time.monotonic() - self._read >= AGE:
                self._entries = {entry.name: entry for entry in named(list(self._found()))}
                self._read = time.monotonic()
            return list(self._entries.values())

    def runs(self) -> list[Entry]:
        """The runs, those of comparisons included."""
        return [entry for entry in self.entries() if entry.kind == "run"]

    def comparisons(self) -> list[Entry]:
        return [entry for entry in self.entries() if entry.kind == "comparison"]

    def run(self, name: str) -> Entry:
        """The run of this name, short or long."""
        return self._get(name, "run")

    def comparison(self, name: str) -> Entry:
        return self._get(name, "comparison")

    def _get(self, name: str, kind: Kind) -> Entry:
        found = self._entries.get(name)  # what was there a moment ago needs no walk
        if found is None or found.kind != kind:
            known = [entry for entry in self.entries() if entry.kind == kind]
            found = next((entry for entry in known if name in (entry.name, entry.long_name)), None)
            if found is None:
                close = nearest(name[:100], [entry.name for entry in known[:1000]])
                raise NotServed(
                    f"there is no {kind} {name[:100]!r} here; {close or 'the list of runs has those there are'}"
                )
        return found

    def _found(self) -> Iterator[tuple[Kind, Path, tuple[str, ...]]]:
        """Kind, folder, and the names of the folders that lead to it from the one that is served."""
        seen: set[Path] = set()
        for root in self.folders:
            for place, folders, files in os.walk(root):
                folders[:] = sorted(name for name in folders if not name.startswith("."))
                path = Path(place)
                kind = kind_of(path, files)
                if kind is not None and path not in seen:
                    seen.add(path)
                    yield kind, path, (root.name, *path.relative_to(root).parts)
                if kind == "run":
                    folders.clear()  # nothing of ours lies below a run


def kind_of(folder: Path, files: Sequence[str]) -> Kind | None:
    """What a folder that holds these files is, if weft wrote it."""
    if RUN in files and is_run(folder):
        return "run"
    return "comparison" if STUDY in files and is_study(folder) else None


def named(found: list[tuple[Kind, Path, tuple[str, ...]]]) -> Iterator[Entry]:
    """The entries with their names: the folder's own where it is unique, else with those that lead to it."""
    short = Counter(safe(parts[-1]) for _, _, parts in found)
    long = Counter(joined(parts) for _, _, parts in found)
    for kind, path, parts in found:
        full = joined(parts)
        if long[full] > 1 or (full in short and len(parts) > 1):
            full = f"{full}--{blake2b(os.fsencode(path), digest_size=4).hexdigest()}"
        own = safe(parts[-1])
        yield Entry(own if short[own] == 1 else full, kind, path, full)


def joined(parts: Sequence[str]) -> str:
    """Names of folders as one name."""
    return "--".join(safe(part) for part in parts)


def safe(name: str) -> str:
    """A folder's name with only what needs no escape in a URL; one that had more is told apart by a digest."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", name)
    if plain == name and name.strip("."):
        return name
    return f"{plain.strip('.') or 'run'}-{blake2b(os.fsencode(name), digest_size=3).hexdigest()}"
