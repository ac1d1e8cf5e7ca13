"""Folders belong to the user: what in them weft wrote, and may therefore replace, delete, and not take for data.

A run folder is known by its run.yaml, that of a study by its study.json. Every other folder that weft writes into has
a file `.weft` with the names of what it wrote there, a line each, or a dot where the whole folder is weft's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from weft.errors import WeftError

MARK, WHOLE = ".weft", "."
RUN, STUDY = "run.yaml", "study.json"
LOCK = ".lock"  # of a run or a study
LOCKS = (LOCK, f"{LOCK}.owner")


def is_output(folder: Path) -> bool:
    """Whether a folder is one that weft made for what comes out."""
    return any((folder / name).is_file() for name in (RUN, STUDY)) or WHOLE in written(folder)


def written(folder: Path) -> set[str]:
    """The names that a folder's mark holds."""
    try:
        with (folder / MARK).open("rb") as file:
            return set(file.read(1 << 20).decode(errors="replace").splitlines())
    except OSError:
        return set()


def mark(folder: Path, name: str = WHOLE) -> None:
    """Note that weft writes the file `name` into a folder, or that the whole of it is weft's."""
    folder.mkdir(parents=True, exist_ok=True)
    if name not in written(folder):
        with (folder / MARK).open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")


def require_output(folder: Path, flag: str = "--output") -> None:
    """Refuse a folder for what comes out that holds someone else's files."""
    if not folder.exists() or (folder.is_dir() and is_output(folder)):
        return
    if not folder.is_dir():
        raise WeftError(f"{folder} is a file, not a folder; choose another {flag}")
    if found := strangers(folder, LOCKS):
        raise WeftError(f"{folder} exists and weft did not make it (it holds {found[0].name}); choose another {flag}")


def claim(path: Path, remedy: str = "move it away") -> Path:
    """The path, for writing a file that is new or that weft wrote before; others' files are refused."""
    if is_output(path.parent) or path.name in written(path.parent):
        return path
    if path.exists() or path.is_symlink():
        raise WeftError(f"{path} exists and weft did not write it; {remedy}")
    try:
        mark(path.parent, path.name)
    except OSError as error:
        raise WeftError(f"cannot write to {path.parent}: {error.strerror}; {remedy}") from error
    return path


def strangers(folder: Path, names: Collection[str]) -> list[Path]:
    """What a folder holds beside the files of these names, and beside what a kill left of writing them."""
    return [path for path in sorted(folder.iterdir()) if whole_name(path.name) not in names]


def whole_name(name: str) -> str:
    """The name of the file that is written aside under this name, see atomic.py; others are their own."""
    found = re.fullmatch(r"\.(.+)\.\d+", name)
    return found[1] if found else name


def discard(folder: Path, names: Collection[str]) -> None:
    """Delete the files of these names, and the folder if then it is empty. What a link leads to stays as it is."""
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if whole_name(path.name) in names and (path.is_symlink() or not path.is_dir()):
            with suppress(OSError):  # what cannot be deleted stays
                path.unlink()
    with suppress(OSError):
        folder.rmdir()


def data_files(root: Path) -> list[Path]:
    """All files below a folder, sorted, but those that weft wrote; links to folders are not followed."""
    return sorted(iterate_data(root))


def iterate_data(root: Path) -> Iterator[Path]:
    """The same, as they are found."""
    for place, folders, names in os.walk(root):
        own = written(Path(place)) if MARK in names else set()
        if Path(place) != root and (WHOLE in own or RUN in names or STUDY in names):
            folders.clear()
            continue
        yield from (Path(place, name) for name in names if name not in own and name != MARK)
