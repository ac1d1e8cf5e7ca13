"""From a name or a path to the reader that understands it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from weft.data.config import SourceConfig
from weft.data.read.decode import ENDINGS as IMAGES
from weft.data.sources import delimited, idx
from weft.data.sources.embedded import read_breast_cancer, read_diabetes, read_digits
from weft.data.sources.hub import read_hub
from weft.data.sources.image_folder import read_image_folder
from weft.data.sources.parquet import read_parquet
from weft.data.sources.pydocs import read_pydocs
from weft.data.sources.table import Reading
from weft.data.sources.tar import read_tar
from weft.disk import iterate_data
from weft.errors import WeftError, nearest

EMBEDDED: dict[str, Callable[[], Reading]] = {
    "digits": read_digits,
    "breast_cancer": read_breast_cancer,
    "diabetes": read_diabetes,
    "pydocs": read_pydocs,
}
Reader = Callable[[Path, SourceConfig], Reading]


def read(name: str, config: SourceConfig) -> Reading:
    """Read an embedded set by name, a dataset of the Hub, or whatever lies at a path."""
    if name in EMBEDDED:
        return EMBEDDED[name]()
    if name.startswith("hub:"):
        return read_hub(name.removeprefix("hub:"), config)
    path = Path(name).expanduser()
    if not _exists(path):
        remedy = f"give a file, a folder, hub:NAME, or one of {', '.join(EMBEDDED)}"
        meant = nearest(name, EMBEDDED) if path.name == name and not path.suffix else ""
        shown = name if len(name) < 200 else f"{name[:200]}…"
        raise WeftError(f"there is no source {shown!r}, neither a path nor a name; {meant or remedy}")
    return reader_of(path)(path, config)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long, or a folder that may not be looked into
        return False


def reader_of(path: Path) -> Reader:
    """The reader for a file, by its ending, or for a folder, by what is in it."""
    if path.is_file():
        found = _by_ending(path.suffix.lower())
        if found is None:
            raise WeftError(f"{path} is of no known kind; give a Parquet, CSV, TSV, JSONL, TXT or tar file")
        return found
    if not path.is_dir():  # a pipe would be read to its end, which may never come
        raise WeftError(f"{path} is neither a regular file nor a folder; copy its content into a file")
    endings = {file.suffix.lower() for file in iterate_data(path)}
    if not endings:
        raise WeftError(f"{path} is an empty folder: there is no file in it or below it; give one with data")
    if any(idx.NAME.match(file.name) for file in path.iterdir()):
        return idx.read_idx
    for ending in (".parquet", ".tar", *delimited.ENDINGS):
        if ending in endings and not (ending in delimited.ENDINGS and endings & set(IMAGES)):
            found = _by_ending(ending)
            assert found is not None
            return found
    if endings & set(IMAGES):
        return read_image_folder
    held = ", ".join(ending or "files without an ending" for ending in sorted(endings)[:5])
    raise WeftError(f"{path} holds nothing that weft can read as data (it holds {held}); `weft data` lists the kinds")


def _by_ending(ending: str) -> Reader | None:
    if ending == ".parquet":
        return read_parquet
    if ending == ".tar":
        return read_tar
    return delimited.read_delimited if ending in delimited.ENDINGS else None
