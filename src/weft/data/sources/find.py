"""From a name or a path to the reader that understands it.

Three embedded sets come with scikit-learn: `digits` (images), `breast_cancer` (binary), `diabetes` (regression).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.config import SourceConfig
from weft.data.read.cache import digest
from weft.data.read.decode import ENDINGS as IMAGES
from weft.data.sources import delimited, idx
from weft.data.sources.arrow import arrow_table
from weft.data.sources.columns import columns_of, variety
from weft.data.sources.image_folder import read_image_folder
from weft.data.sources.parquet import read_parquet
from weft.data.sources.pydocs import read_pydocs
from weft.data.sources.table import Reading, Table
from weft.data.sources.tar import read_tar
from weft.disk import iterate_data, user_path
from weft.errors import WeftError, nearest

Reader = Callable[[Path, SourceConfig], Reading]


def read(name: str, config: SourceConfig) -> Reading:
    """Read an embedded set by name, a dataset of the Hub, or whatever lies at a path."""
    if name in EMBEDDED:
        return EMBEDDED[name]()
    if name.startswith("hub:"):
        return read_hub(name.removeprefix("hub:"), config)
    path = user_path(name)
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


def read_digits() -> Reading:
    """1,797 grey images of 8 × 8; the file's 17 levels are spread over the 256 of a byte."""
    levels, targets = _digits_file() or _digits_loaded()
    pixels = np.rint(levels.reshape(-1, 1, 8, 8) * (255 / 16)).astype(np.uint8)
    return _reading("digits", "image", pixels, targets, names=[str(digit) for digit in range(10)])


Digits = tuple[NDArray[np.float64], NDArray[np.int64]]  # (images, 64) levels from 0 to 16, and (images,)


def _digits_file() -> Digits | None:
    """From the file where scikit-learn has it: to import scikit-learn takes as long as to import torch."""
    package = find_spec("sklearn")
    folders = package.submodule_search_locations if package is not None else None
    file = Path(next(iter(folders or ["."])), "datasets", "data", "digits.csv.gz")
    if not file.is_file():
        return None
    table = np.loadtxt(file, delimiter=",")
    return table[:, :-1], table[:, -1].astype(np.int64)


def _digits_loaded() -> Digits:
    from sklearn.datasets import load_digits

    bunch: Any = load_digits()
    return bunch.data, bunch.target


def read_breast_cancer() -> Reading:
    """569 tumours, 30 measurements each, malignant or benign."""
    from sklearn.datasets import load_breast_cancer

    bunch: Any = load_breast_cancer()
    return _vectors("breast_cancer", bunch, names=[str(name) for name in bunch.target_names])


def read_diabetes() -> Reading:
    """442 patients, 10 measurements each, and the disease's progression after a year."""
    from sklearn.datasets import load_diabetes

    return _vectors("diabetes", load_diabetes(), names=None)


def _vectors(name: str, bunch: Any, names: list[str] | None) -> Reading:
    reading = _reading(name, "vector", bunch.data.astype(np.float32), bunch.target, names)
    reading.columns = [str(column) for column in bunch.feature_names]
    return reading


def _reading(name: str, modality: Any, inputs: Any, labels: Any, names: list[str] | None) -> Reading:
    table = Table(inputs=inputs, labels=labels, place=lambda row: f"{name} row {row}")
    content = digest(inputs.tobytes(), np.asarray(labels).tobytes())
    return Reading(modality=modality, tables={"all": table}, files={name: content}, names=names)


EMBEDDED: dict[str, Callable[[], Reading]] = {
    "digits": read_digits,
    "breast_cancer": read_breast_cancer,
    "diabetes": read_diabetes,
    "pydocs": read_pydocs,
}


def read_hub(name: str, config: SourceConfig) -> Reading:
    """All splits of a dataset, through the `datasets` library and its own cache."""
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise WeftError(f"hub:{name} needs the library `datasets`; pip install 'weft[hub]'") from error
    path, _, configuration = name.partition(":")
    try:
        found: Any = load_dataset(path, configuration or None)
    except Exception as error:  # no network, no such dataset, gated: the library has its own exceptions for each
        raise WeftError(f"hub:{name} cannot be loaded: {error}") from error
    return from_datasets(found, name, config)


def from_datasets(found: Any, name: str, config: SourceConfig) -> Reading:
    """A `DatasetDict` as a reading."""
    first = next(iter(found.values()))

    def values(column: str) -> tuple[int, int]:
        return variety(first.with_format("arrow")[:][column])

    columns = columns_of(first.features.arrow_schema, config, name, values)
    tables = {}
    for split, dataset in found.items():
        table = dataset.with_format("arrow")[:]
        tables[split] = arrow_table(table, columns, partial(_place, name, split), {})
    files = {split: str(dataset._fingerprint) for split, dataset in found.items()}
    told = (columns.names, columns.features, list(columns.notes), columns.target, columns.spare)
    return Reading(columns.modality, dict(tables), files, *told)


def _place(name: str, split: str, row: int) -> str:
    return f"{name} {split} row {row}"
