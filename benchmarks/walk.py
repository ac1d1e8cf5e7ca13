"""How much of the source does one training run touch? Files in which a function runs, and calls that cross folders.

    python benchmarks/walk.py [WORD …]

Traces a `weft` command, by default three steps of the Mixer on the digits, with `sys.setprofile` in every thread of the
process. Class bodies and calls made while a module of weft is imported do not count. A crossing is a distinct pair of
caller's file and called file in different top-level folders. Calls from and to the single modules directly below weft
(`disk.py`, `machine.py` and so on, which serve all folders) are counted apart. A call that passes through another
library counts for the file of weft that it came from. What the cache holds is not made again: an empty one adds to it.
"""

from __future__ import annotations

import inspect
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import weft
from weft.networks import listing

ROOT = f"{Path(weft.__file__).resolve().parent}/"
COMMAND = ["train", "digits", "--model", "mixer_nano_p4_32", "--network", "patch_size=2", "img_size=8", "--steps", "3"]


class Walk:
    """The files in which functions ran, and who called whom."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.calls: set[tuple[str, str]] = set()

    def see(self, frame: FrameType, event: str, _: Any) -> None:
        """Note one call; a profile function."""
        if event != "call" or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # module and class bodies are not
            return
        called = file_of(frame)
        if called is None or importing(frame):
            return
        self.files.add(called)
        caller = frame.f_back
        while caller is not None and file_of(caller) is None:
            caller = caller.f_back
        if caller is not None and (before := file_of(caller)) is not None:
            self.calls.add((before, called))

    def crossings(self) -> list[tuple[str, str]]:
        """The calls between different top-level entries."""
        return sorted(pair for pair in self.calls if entry(pair[0]) != entry(pair[1]))

    def between_folders(self) -> list[tuple[str, str]]:
        """Those of them that neither begin nor end in a single module."""
        return [pair for pair in self.crossings() if all("/" in file for file in pair)]

    def start(self) -> None:
        threading.setprofile(self.see)
        sys.setprofile(self.see)

    def stop(self) -> None:
        threading.setprofile(None)
        sys.setprofile(None)


def file_of(frame: FrameType) -> str | None:
    """The file of a frame below weft, or None if it is not of weft."""
    name = frame.f_code.co_filename
    return name.removeprefix(ROOT) if name.startswith(ROOT) else None


def importing(frame: FrameType | None) -> bool:
    """Whether a module of weft is being imported further up."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and file_of(frame) is not None:
            return True
        frame = frame.f_back
    return False


def entry(file: str) -> str:
    """The folder or module directly below weft."""
    return file.partition("/")[0]


def follow(words: list[str]) -> Walk:
    """Run a `weft` command in this process and watch it."""
    from weft.commands import main as command

    walk = Walk()
    command.end = sys.exit  # a command ends its process at once, before what was seen could be printed
    sys.argv = ["weft", *words]
    walk.start()
    try:
        command.main()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        walk.stop()
    return walk


def main() -> None:
    weft.list_models()  # its file in the cache is written now: the first run after a change reads every family
    listing.listing.cache_clear()
    with tempfile.TemporaryDirectory() as folder:
        walk = follow(sys.argv[1:] or [*COMMAND, "--output", f"{folder}/run"])
    folders = walk.between_folders()
    modules = [pair for pair in walk.crossings() if pair not in folders]
    print(f"\n{len(walk.files)} files:", *sorted(walk.files), sep="\n  ")
    for title, pairs in (("crossings between folders", folders), ("calls from and to single modules", modules)):
        print(f"\n{len(pairs)} {title}:", *(f"{caller} → {called}" for caller, called in pairs), sep="\n  ")
    print(
        f"\n{len(walk.files)} files, {len(folders)} crossings between folders, {len(modules)} calls from and to single "
        f"modules, {len(walk.crossings())} in all"
    )


if __name__ == "__main__":
    main()
