"""The sources that may be looked at and compared: what lies below the folders of --data, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.data.config import EMBEDDED
from weft.data.read.decode import ENDINGS as IMAGES
from weft.disk import is_output
from weft.serve.catalogue import NotServed

MOST = 500  # entries of a folder that are listed
ENDINGS = {".parquet", ".csv", ".tsv", ".jsonl", ".txt", ".tar"}  # of files that are sources by themselves


@dataclass(frozen=True)
class Place:
    """A folder or file below a folder of --data, or an embedded set; `key` is how an address names it."""

    key: str
    name: str
    path: Path | None
    """None: an embedded set"""

    @property
    def source(self) -> str:
        """As `weft compare` takes it."""
        return self.key if self.path is None else str(self.path)


@dataclass(frozen=True)
class Listed:
    """What a folder holds that may be a source, or lead to one."""

    place: Place
    is_folder: bool
    words: str
    """what it seems to be"""


class Sources:
    """The folders of --data."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.roots = [folder.resolve() for folder in folders]

    def find(self, key: str) -> Place:
        """The place of a key; refused where it is not below the folders, however it is written."""
        if key in EMBEDDED:
            return Place(key, key, None)
        number, _, rest = key.partition("/")
        root = {str(each): folder for each, folder in enumerate(self.roots)}.get(number)
        try:
            path = None if root is None else root.joinpath(rest).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            path = None
        if root is None or path is None or not is_open(path, root):  # one sentence: what lies elsewhere is not told
            raise NotServed(
                f"there is no source {key[:100]!r} below the folders of --data; the list has those there are"
            )
        return self._place(int(number), path)

    def of(self, source: str) -> Place | None:
        """The place of a source as a command named it; None where the page may not read it."""
        if source in EMBEDDED:
            return Place(source, source, None)
        path = Path(source)
        for number, root in enumerate(self.roots):
            if path.is_absolute() and path.is_relative_to(root):
                try:
                    return self.find(f"{number}/{path.relative_to(root).as_posix()}")
                except NotServed:
                    return None
        return None

    def _place(self, number: int, path: Path) -> Place:
        inner = path.relative_to(self.roots[number]).as_posix()
        key = str(number) if inner == "." else f"{number}/{inner}"
        return Place(key, self.roots[number].name if inner == "." else f"{self.roots[number].name}/{inner}", path)

    def top(self) -> list[Listed]:
        """The folders of --data, and the sets that come with weft."""
        own = [Listed(self._place(number, root), True, "folder") for number, root in enumerate(self.roots)]
        return [*own, *(Listed(Place(name, name, None), False, "comes with weft") for name in EMBEDDED)]

    def below(self, place: Place) -> list[Listed]:
        """What lies in a folder; hidden files, links that lead out, and what weft wrote are left out."""
        if place.path is None or not place.path.is_dir():
            return []
        found = []
        for path in sorted(place.path.iterdir())[: 4 * MOST]:
            if path.name.startswith(".") or path.is_symlink() or (path.is_dir() and is_output(path)):
                continue
            if path.is_dir() or path.suffix.lower() in ENDINGS:
                inner = Place(f"{place.key}/{path.name}", path.name, path)
                found.append(Listed(inner, path.is_dir(), "folder" if path.is_dir() else f"{path.suffix[1:]} file"))
        return found[:MOST]

    def pictures(self, place: Place) -> int:
        """Pictures that lie in a folder itself."""
        if place.path is None or not place.path.is_dir():
            return 0
        return sum(path.suffix.lower() in IMAGES for path in list(place.path.iterdir())[: 4 * MOST])


def is_open(path: Path, root: Path) -> bool:
    """Whether a path lies below a folder, with nothing hidden on the way to it."""
    return path.is_relative_to(root) and not any(part.startswith(".") for part in path.relative_to(root).parts)
