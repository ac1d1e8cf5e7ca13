"""Data in memory as a source: arrays, lists, tables and Datasets become Parquet files below the cache, written once.

A worker process, and a run that is resumed tomorrow, find them by their path like any other source. The folder is
named after the content, so the same data are stored once. Libraries such as pandas and `datasets` are known by their
methods; none of them is imported.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from weft import disk
from weft.data.read.cache import Cache, digest, digest_files
from weft.data.sources.arrays import Examples, alike, is_missing, is_picture, listed, recognise, rows_of
from weft.data.sources.arrow import pixel_bytes
from weft.data.sources.columns import STATED
from weft.errors import WeftError

FOLDER = "sources"  # below the cache; entries are kept until somebody deletes them, as runs refer to them
ROWS = 4096  # of a row group: what is read at once where a source is streamed


def store(inputs: Any, targets: Any = None, **others: Any) -> Path:
    """Write inputs with their targets, and other splits by name, as a folder of Parquet files; returns the folder.

    Each of `others` is a pair (inputs, targets), or holds both, as Datasets and tables do; None is left out.
    """
    tables = tables_of(inputs, targets)
    given = {name: split for name, split in others.items() if split is not None}
    if given and set(tables) != {"all"}:
        raise WeftError(f"the data bring their own splits ({', '.join(tables)}); leave out {' and '.join(given)}")
    if given:
        tables = {"train": tables["all"]}
    for name, split in given.items():
        pair = split if isinstance(split, tuple) and len(split) == 2 else (split, None)
        tables[name] = one_table(tables_of(*pair), name)
    return write(tables)


def one_table(tables: dict[str, pa.Table], name: str) -> pa.Table:
    if len(tables) != 1:
        raise WeftError(f"{name} is to be one split, not a set of {', '.join(tables)}; give one of them")
    return next(iter(tables.values()))


def write(tables: dict[str, pa.Table]) -> Path:
    """The folder that holds these tables: there whole or not at all, whenever the machine stops."""
    folder = Cache().folder / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-", ignore_cleanup_errors=True) as made:
            aside = Path(made) / "data"
            aside.mkdir()
            for name, table in tables.items():
                buffer = pa.BufferOutputStream()
                pq.write_table(table, buffer, row_group_size=ROWS)
                disk.write_bytes(aside / f"{file_name(name)}.parquet", buffer.getvalue())
            content = digest_files(sorted(aside.iterdir()), aside)
            place = folder / f"data-{digest(*(part for item in content.items() for part in item))[:12]}"
            if not place.exists():
                with suppress(FileExistsError):  # another process has stored the same at this moment
                    aside.rename(place)
                    disk.sync_folder(folder)
    except OSError as error:
        raise WeftError(
            f"cannot write to {folder}: {error.strerror}; set WEFT_CACHE to a folder that can be written to"
        ) from error
    return place


def file_name(split: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in split) or "all"


# ---- What was given, as tables.


def tables_of(inputs: Any, targets: Any = None) -> dict[str, pa.Table]:
    """Split -> table; data without splits of their own are the split `all`."""
    if is_dataset_dict(inputs) or is_dataset(inputs):
        if targets is not None:
            raise WeftError("a Dataset brings its own labels; leave out y, and name their column with target=…")
        found = inputs if is_dataset_dict(inputs) else {"all": inputs}
        return {str(name): of_dataset(dataset) for name, dataset in found.items()}
    if is_table(inputs):
        return {"all": of_table(inputs, targets)}
    if is_item_dataset(inputs):
        if targets is not None:
            raise WeftError("a Dataset brings its own labels; leave out y")
        return {"all": of_items(inputs)}
    return {"all": of_examples(inputs, targets)}


def is_dataset(value: Any) -> bool:
    """A Dataset of the library `datasets`; not one of its columns, which has `features` alone."""
    return hasattr(value, "features") and hasattr(value, "with_format")


def is_dataset_dict(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(map(is_dataset, value.values()))


def is_table(value: Any) -> bool:
    """A table of pandas, polars or pyarrow."""
    return hasattr(value, "to_pydict") or (hasattr(value, "columns") and hasattr(value, "to_numpy"))


def is_item_dataset(value: Any) -> bool:
    """A Dataset as torch has them: an item (input, target) for each number. Lists, arrays and columns are none."""
    if isinstance(value, Sequence | dict) or hasattr(value, "convert"):
        return False
    return not any(hasattr(value, name) for name in ("__array__", "to_numpy", "to_pylist"))


def of_dataset(dataset: Any) -> pa.Table:
    """A Dataset of the library `datasets`, with its class names; images that are named by a path are read."""
    length_of(dataset)
    table = dataset.with_format("arrow")[:]
    for place, field in enumerate(table.schema):
        if pa.types.is_struct(field.type) and {part.name for part in field.type} == {"bytes", "path"}:
            images = [image_bytes(cell) for cell in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, pa.array(images, pa.binary()))
        elif isinstance(field.type, pa.BaseExtensionType):  # Array2D, Array3D: nested lists of one shape
            arrays = [None if cell is None else np.asarray(cell) for cell in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, pictures(arrays))
    return table.replace_schema_metadata(dataset.features.arrow_schema.metadata)


def image_bytes(cell: dict[str, Any] | None) -> bytes | None:
    """An encoded image, out of its cell or the file that the cell names."""
    if cell is None:
        return None
    content: bytes | None = cell["bytes"]
    return disk.read_bytes(Path(cell["path"])) if content is None and cell["path"] else content


def of_table(table: Any, targets: Any) -> pa.Table:
    """The columns of a table; with `targets`, all of them are inputs."""
    names = [str(name) for name in getattr(table, "column_names", None) or table.columns]
    if len(set(names)) < len(names):
        raise WeftError("two columns of the table have the same name; give each a name of its own")
    columns = {name: column_of(table[key]) for name, key in zip(names, keys_of(table), strict=True)}
    if targets is None:
        return pa.table(columns)
    label = next(name for name in ("label", "target", "y", "the target") if name not in columns)
    labels = labels_of(targets, len(table))
    return stated(pa.table({**columns, label: labels}), names, label)


def keys_of(table: Any) -> Iterable[Any]:
    return getattr(table, "column_names", None) or table.columns


def column_of(column: Any) -> pa.Array:
    """A column: numbers as they are, words and other things one by one, with nothing for what is missing."""
    values = rows_of(column)
    if isinstance(values, np.ndarray):
        return pa.array(values)
    values = [None if is_missing(value) else value for value in values]
    return pictures(values) if any(map(is_picture, values)) else plain(values)


def pictures(values: list[Any]) -> pa.Array:
    """A column of images in memory, arrays or Pillow's; nothing where one is missing."""
    rows = [row for row, value in enumerate(values) if value is not None]
    cells: list[bytes | None] = [None] * len(values)
    for row, image in zip(rows, alike(listed([values[row] for row in rows])), strict=True):
        cells[row] = pixel_bytes(image)
    return pa.array(cells, pa.binary())


def of_items(dataset: Any) -> pa.Table:
    """A Dataset of items (input, target)."""
    count = length_of(dataset)
    items = [dataset[number] for number in range(count)]
    for number, item in enumerate(items):
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise WeftError(f"item {number} of the Dataset is no pair (input, target); give a Dataset of pairs")
    inputs, targets = zip(*items, strict=True) if items else ((), ())
    first = inputs[0] if inputs else None
    rows = np.stack([np.asarray(row) for row in inputs]) if getattr(first, "ndim", None) == 1 else list(inputs)
    return of_examples(rows, [value.item() if hasattr(value, "item") else value for value in targets])


def length_of(dataset: Any) -> int:
    """How many examples a Dataset has, or the sentence that it does not say so."""
    if hasattr(dataset, "batch_sampler") and hasattr(dataset, "dataset"):
        raise WeftError("a DataLoader makes batches, and weft makes its own; give the Dataset in it, loader.dataset")
    try:
        if hasattr(dataset, "__getitem__"):
            return len(dataset)
    except (TypeError, NotImplementedError):
        pass
    raise WeftError(
        f"a {type(dataset).__name__} has no length, so that its examples cannot be cut into splits; "
        "give a Dataset with __len__ and __getitem__, or a list"
    )


def of_examples(inputs: Any, targets: Any) -> pa.Table:
    """Texts, pairs, images or vectors, beside their labels."""
    examples = recognise(inputs)
    columns = input_columns(examples)
    label = None if targets is None else "label"
    if label is not None:
        columns[label] = labels_of(targets, len(examples))
    return stated(pa.table(columns), [name for name in columns if name != label], label)


def input_columns(examples: Examples) -> dict[str, pa.Array]:
    if examples.modality == "image":
        return {"image": pa.array([pixel_bytes(image) for image in examples.rows], pa.binary())}
    if examples.modality == "text":
        return {"text": pa.array(examples.rows, pa.string())}
    if examples.modality == "pair":
        first, second = zip(*examples.rows, strict=True)
        return {"text_a": pa.array(first, pa.string()), "text_b": pa.array(second, pa.string())}
    vectors = vectors_of(examples.rows)
    return {"x": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])}


def vectors_of(rows: Any) -> NDArray[np.float32]:
    """(n, features)."""
    try:
        with np.errstate(over="ignore"):
            vectors = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise WeftError(f"the inputs are neither texts nor images nor rows of numbers: {error}") from error
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise WeftError(f"inputs of shape {vectors.shape} are no rows of numbers; give an array (n, features)")
    return vectors


def labels_of(targets: Any, count: int) -> pa.Array:
    """One label an input, as a column."""
    values = rows_of(targets)
    if isinstance(values, list) and not any(isinstance(value, str) or is_missing(value) for value in values):
        with suppress(ValueError):
            values = np.asarray(values)
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise WeftError(f"labels of shape {values.shape} are not one an input; give an array (n,)")
    if len(values) != count:
        raise WeftError(f"{count} inputs and {len(values)} labels: one label an input is needed")
    return column_of(values)


def plain(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError) as error:
        raise WeftError(f"a column holds values of several kinds ({disk.brief(error)}); give it one kind") from error


def stated(table: pa.Table, inputs: list[str], target: str | None) -> pa.Table:
    """The table with a note of what is input and what is target, so that nothing need be guessed from names."""
    note = json.dumps({"inputs": inputs, "target": target})
    return table.replace_schema_metadata({STATED: note.encode()})
