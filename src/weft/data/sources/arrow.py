"""Columns of an Arrow table as raw inputs and labels."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from weft.data.sources.columns import Columns
from weft.data.sources.table import Inputs, Table, as_number


def arrow_table(table: pa.Table, columns: Columns, place: Callable[[int], str], faults: dict[int, str]) -> Table:
    """A whole Arrow table as a table of raw inputs; `faults` are those that are known already."""
    inputs, more = raw_inputs(table, columns)
    groups = raw_labels(table, columns.group)
    return Table(inputs, raw_labels(table, columns.target), place, groups, {**more, **faults})


def raw_inputs(table: pa.Table, columns: Columns) -> tuple[Inputs, dict[int, str]]:
    """The rows' raw inputs, and what is wrong with some of them."""
    if columns.modality == "vector":
        return _vectors(table, columns.inputs), {}
    parts = [table.column(name) for name in columns.inputs]
    if columns.modality == "image":
        column = parts[0]
        if pa.types.is_struct(column.type):
            column = pa.chunked_array([chunk.field("bytes") for chunk in column.chunks], pa.binary())
        return [pixels_in(value or b"") for value in column.to_pylist()], {}
    faults: dict[int, str] = {}
    texts = [list(_texts(column, faults)) for column in parts]
    return (texts[0] if len(texts) == 1 else list(zip(*texts, strict=True))), faults


NPY = b"\x93NUMPY"


def pixel_bytes(image: NDArray[np.uint8]) -> bytes:
    """An image in memory, (channels, height, width), as a cell: NumPy's own format, no bit lost."""
    file = io.BytesIO()
    np.save(file, image, allow_pickle=False)
    return file.getvalue()


def pixels_in(cell: bytes) -> bytes | NDArray[np.uint8]:
    """The image that `pixel_bytes` wrote into a cell; an encoded image, or anything else, as it is."""
    if not cell.startswith(NPY):
        return cell
    file = io.BytesIO(cell)
    try:
        version = np.lib.format.read_magic(file)
        shape, fortran, kind = np.lib.format.read_array_header_1_0(file)
    except (ValueError, EOFError):
        return cell
    pixels = cell[file.tell() :]
    sound = version == (1, 0) and kind == np.uint8 and not fortran and len(shape) == 3 and 0 not in shape
    if not sound or math.prod(shape) != len(pixels):  # a few bytes must not ask for all of the memory
        return cell
    return np.frombuffer(bytearray(pixels), np.uint8).reshape(shape)


def raw_labels(table: pa.Table, target: str | None) -> NDArray[Any] | None:
    """The labels as numbers or words, true and false among these; a missing number is NaN, a missing word None."""
    if target is None or target not in table.column_names:
        return None
    column = _plain(table.column(target))
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.string())
    values = column.to_numpy()
    return values if values.dtype.kind in "iufO" else values.astype(np.int64)


def _texts(column: pa.ChunkedArray, faults: dict[int, str]) -> Iterator[str]:
    try:
        yield from ("" if value is None else str(value) for value in _plain(column).to_pylist())
    except UnicodeDecodeError:
        for row, data in enumerate(column.cast(pa.binary()).to_pylist()):
            try:
                yield (data or b"").decode("utf-8")
            except UnicodeDecodeError as error:
                faults[row] = f"the text is not UTF-8 (byte {error.start})"
                yield ""


def _vectors(table: pa.Table, names: tuple[str, ...]) -> NDArray[np.float32]:
    """(rows, features): a column each, or one column of equally long lists."""
    columns = [table.column(name) for name in names]
    if len(columns) == 1 and pa.types.is_nested(columns[0].type):
        rows = columns[0].to_pylist()
        width = max((len(row or ()) for row in rows), default=0)
        ragged = [row if row is not None and len(row) == width else [np.nan] * width for row in rows]
        return np.array(ragged, dtype=np.float32).reshape(len(rows), width)
    with np.errstate(over="ignore"):  # what float32 cannot hold is infinite, and a fault of its row
        return np.stack([_numbers(column).astype(np.float32) for column in columns], axis=1)


def _numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    """A column as float64; a word that slipped in, or nothing, is NaN."""
    column = _plain(column)
    try:
        return column.cast(pa.float64(), safe=False).to_numpy()
    except pa.ArrowException:
        return np.array([as_number(value) for value in column.to_pylist()])


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Categories as what they name, decimals as numbers."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column
