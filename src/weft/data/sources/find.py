"""From a name or a path to the reader that understands it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from weft.data.config import SourceConfig
from weft.data.sources.embedded import read_breast_cancer, read_diabetes, read_digits
from weft.data.sources.parquet import read_parquet
from weft.data.sources.pydocs import read_pydocs
from weft.data.sources.table import Reading
from weft.errors import WeftError, nearest

EMBEDDED: dict[str, Callable[[], Reading]] = {
    "digits": read_digits,
    "breast_cancer": read_breast_cancer,
    "diabetes": read_diabetes,
    "pydocs": read_pydocs,
}


def read(name: str, config: SourceConfig) -> Reading:
    """Read an embedded set by name, or whatever lies at a path."""
    if name in EMBEDDED:
        return EMBEDDED[name]()
    path = Path(name).expanduser()
    if not path.exists():
        raise WeftError(f"there is no source {name!r}: no such path, and {nearest(name, EMBEDDED) or 'no such name.'}")
    return read_parquet(path, config)
