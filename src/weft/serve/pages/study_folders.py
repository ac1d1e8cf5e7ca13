"""What comparisons and searches share: folders that a process may be at work in, and what was last made of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from fastapi import Request
from fastapi.responses import Response

from weft import machine
from weft.disk import LOCK
from weft.serve.catalogue import Entry
from weft.serve.pages.site import Site

KEPT = 8  # folders of which what was found is kept in memory
LOG = 1 << 15  # bytes of a log's end that are shown
Found = TypeVar("Found")


def listed(
    site: Site, request: Request, template: str, entries: Iterable[Entry], about: Callable[[Entry], dict[str, Any]]
) -> Response:
    """The view that lists some entries, those first in which something happened last."""
    found = []
    for entry in entries:
        with suppress(FileNotFoundError):  # deleted a moment ago
            found.append(about(entry))
    found.sort(key=lambda each: -each["changed"])
    return site.live(request, template, found=found)


def state(entry: Entry) -> dict[str, Any]:
    """Whether somebody works on it, and what its command printed last."""
    return {"running": is_running(entry.path), "log": tail(entry.path / "log.txt")}


def is_running(folder: Path) -> bool:
    """Whether a process drives a study in this folder."""
    held = machine.held_locks()
    try:
        number = (folder / LOCK).stat().st_ino
    except OSError:
        return False
    return number in held if held is not None else machine.Lock(folder / LOCK).is_busy()


def tail(path: Path) -> str:
    """The last lines of a log; nothing where there is none, and links are not followed."""
    if path.is_symlink() or not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - LOG))
            text = file.read(LOG).decode("utf-8", errors="replace")
    except OSError:
        return ""
    return text if size <= LOG else "…" + text.partition("\n")[2]


class Latest(Generic[Found]):
    """What was found in the folders that were asked for last, found again only where their stamp has changed."""

    def __init__(self, stamp: Callable[[Entry], Hashable], find: Callable[[Entry], Found]) -> None:
        self.stamp, self.find = stamp, find
        self._kept: OrderedDict[Path, tuple[Hashable, Found]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, entry: Entry) -> Found:
        """What is in a folder; `WeftError` where it is damaged."""
        with self._lock:
            stamp = self.stamp(entry)
            known = self._kept.pop(entry.path, None)
            if known is None or known[0] != stamp:
                known = stamp, self.find(entry)
            self._kept[entry.path] = known
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return known[1]
