"""What there is to serve: runs, comparisons and searches below some folders, each under a name that fits into a URL.

Only folders that weft wrote are entries, and links are not followed: nothing outside the folders can be reached. A
folder is listed again only when its time of change says so: ten thousand runs are looked after by as many calls of
stat. No torch here.
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
from typing import Literal, NamedTuple

from weft.disk import MARK, RUN, STUDY, is_run, is_study
from weft.errors import WeftError, nearest

Kind = Literal["run", "comparison", "search"]
Found = tuple[Kind, str, tuple[str, ...]]
AGE = 2.0  # seconds for which the folders are not looked through again
SETTLED = 2_000_000_000  # nanoseconds after a change in which a second one may leave the same time of change
DEEPEST = 32  # folders below each other that are looked into
JOURNAL = "journal.log"  # of a search for settings


class NotServed(WeftError):
    """There is no such run, comparison or file."""


@dataclass(frozen=True)
class Entry:
    """A run, a comparison or a search."""

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


class Seen(NamedTuple):
    """A folder as it was when it was listed."""

    changed: int
    """its time of change in nanoseconds; 0 where that may not tell the next change"""
    kind: Kind | None
    below: tuple[str, ...]
    """folders in it that may hold entries"""


class Catalogue:
    """The entries below some folders, as they are now: looked for again when they were not for two seconds."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(folder.resolve() for folder in folders)
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._seen: dict[str, Seen] = {}
        self._found: list[Found] = []
        self._read = -AGE

    def entries(self) -> list[Entry]:
        """All of them, by name."""
        with self._lock:
            if time.monotonic() - self._read >= AGE:
                self._look()
                self._read = time.monotonic()
            return list(self._entries.values())

    def runs(self) -> list[Entry]:
        """The runs, those of comparisons included."""
        return [entry for entry in self.entries() if entry.kind == "run"]

    def comparisons(self) -> list[Entry]:
        return [entry for entry in self.entries() if entry.kind == "comparison"]

    def searches(self) -> list[Entry]:
        """The searches for settings."""
        return [entry for entry in self.entries() if entry.kind == "search"]

    def run(self, name: str) -> Entry:
        """The run of this name, short or long."""
        return self._get(name, "run")

    def comparison(self, name: str) -> Entry:
        return self._get(name, "comparison")

    def search(self, name: str) -> Entry:
        return self._get(name, "search")

    def changed(self, entry: Entry) -> int:
        """When a file was last made, replaced or removed in an entry's folder; 0 where that is too recent to tell."""
        seen = self._seen.get(str(entry.path))
        return 0 if seen is None else seen.changed

    def add(self, folder: Path) -> None:
        """Serve one more folder."""
        if not any(folder.is_relative_to(known) for known in self.folders):
            self.folders = (*self.folders, folder)
        self.forget()

    def forget(self) -> None:
        """Look again at the next question, as something was made just now."""
        self._read = -AGE

    def _get(self, name: str, kind: Kind) -> Entry:
        found = self._entries.get(name)  # what was there a moment ago needs no walk
        if found is not None and not found.path.is_dir():
            self.forget()  # it was deleted
            found = None
        if found is None or found.kind != kind:
            known = [entry for entry in self.entries() if entry.kind == kind]
            found = next((entry for entry in known if name in (entry.name, entry.long_name)), None)
            if found is None:
                close = nearest(name[:100], [entry.name for entry in known[:1000]])
                raise NotServed(f"there is no {kind} {name[:100]!r} here; {close or 'the list has those there are'}")
        return found

    def _look(self) -> None:
        """Bring the entries up to date; their names are made anew only where some came or went."""
        seen: dict[str, Seen] = {}
        found = [each for root in self.folders for each in self._below(str(root), (root.name,), seen)]
        self._seen = seen
        if found != self._found:
            self._found = found
            self._entries = {entry.name: entry for entry in named(found)}

    def _below(self, place: str, parts: tuple[str, ...], seen: dict[str, Seen]) -> Iterator[Found]:
        """Kind, folder, and the names of the folders that lead to it from the one that is served."""
        if place in seen or len(parts) > DEEPEST:  # one of the folders lies in another
            return
        now = self._listed(place)
        if now is None:
            return
        seen[place] = now
        if now.kind is not None:
            yield now.kind, place, parts
        for name in now.below:
            yield from self._below(f"{place}{os.sep}{name}", (*parts, name), seen)  # a Path takes ten times as long

    def _listed(self, place: str) -> Seen | None:
        """What a folder holds; as it was, where it has not changed. None for one that is gone or forbidden."""
        try:
            changed = os.stat(place).st_mtime_ns  # noqa: PTH116
            known = self._seen.get(place)
            if known is not None and known.changed == changed:
                return known
            with os.scandir(place) as listing:
                entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listing]
        except OSError:
            return None
        kind = kind_of(Path(place), [name for name, is_folder in entries if not is_folder])
        folders = sorted(name for name, is_folder in entries if is_folder and not name.startswith("."))
        settled = time.time_ns() - changed > SETTLED
        below = () if kind == "run" else tuple(folders)  # nothing of ours lies below a run
        return Seen(changed if settled else 0, kind, below)


def kind_of(folder: Path, files: Sequence[str]) -> Kind | None:
    """What a folder that holds these files is, if weft wrote it."""
    if RUN in files and is_run(folder):
        return "run"
    if STUDY in files and is_study(folder):
        return "comparison"
    return "search" if JOURNAL in files and MARK in files else None


def named(found: list[Found]) -> Iterator[Entry]:
    """The entries with their names: the folder's own where it is unique, else with those that lead to it."""
    short = Counter(safe(parts[-1]) for _, _, parts in found)
    long = Counter(joined(parts) for _, _, parts in found)
    for kind, place, parts in found:
        path = Path(place)
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
