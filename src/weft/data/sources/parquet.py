"""Parquet in the Hugging Face layout: a file, or a folder of them, one or more a split. A block is a row group."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from weft.data.config import SourceConfig
from weft.data.fingerprint import digest_files
from weft.data.sources.columns import Columns, columns_of
from weft.data.sources.table import Block, Reading, Shards, Table, join
from weft.errors import WeftError

_SHARD = re.compile(r"[-_.]?\d+([-_]of[-_]\d+)?$")


def read_parquet(path: Path, config: SourceConfig) -> Reading:
    """A Parquet file or a folder of them, in memory or, when larger than `config.memory`, block by block."""
    root = path if path.is_dir() else path.parent
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    splits = split_names(files, root)
    columns = columns_of(_schema(files[0]), config, files[0].name)
    large = sum(file.stat().st_size for file in files) > config.memory
    stream = large if config.stream is None else config.stream
    tables: dict[str, Table | Shards] = {}
    for split, members in splits.items():
        shards = ParquetShards(members, columns, root)
        tables[split] = shards if stream else _in_memory(shards)
    return Reading(columns.modality, tables, digest_files(files, root), columns.names, list(columns.inputs))


def split_names(files: Sequence[Path], root: Path) -> dict[str, list[Path]]:
    """Split -> its files: `train.parquet`, `train-00000-of-00002.parquet` and `train/0000.parquet` are all train."""
    splits: dict[str, list[Path]] = {}
    for file in files:
        stem = _SHARD.sub("", file.name.split(".")[0])
        folder = file.parent.name if file.parent != root else ""
        name = stem if folder in {"", "data"} or is_split(stem) else folder
        splits.setdefault(name if is_split(name) or len(files) > 1 else "all", []).append(file)
    if not any(is_split(name) for name in splits):
        return {"all": list(files)}
    return splits


def is_split(name: str) -> bool:
    """Whether a file or folder is named as splits are."""
    return re.match(r"(train|test|val|valid|validation|dev|eval|unsupervised|unlabell?ed)", name.lower()) is not None


class ParquetShards:
    """Row groups of several files, read one at a time, and of their columns only those that are used."""

    def __init__(self, files: list[Path], columns: Columns, root: Path) -> None:
        self.files, self.columns, self.root = files, columns, root
        self.groups: list[tuple[Path, int]] = []
        rows: list[int] = []
        for file in files:
            metadata = _metadata(file)
            self.groups += [(file, number) for number in range(metadata.num_row_groups)]
            rows += [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        self.rows = np.array(rows, dtype=np.int64)
        self.present = set(_schema(files[0]).names)

    def block(self, number: int) -> Block:
        """Row group `number`."""
        table = self.read(number, self.columns.wanted)
        inputs, faults = raw_inputs(table, self.columns)
        return Block(inputs, raw_labels(table, self.columns.target), faults)

    def read(self, number: int, columns: list[str]) -> pa.Table:
        """Some columns of row group `number`; those that this split lacks are left out."""
        file, group = self.groups[number]
        try:
            with pq.ParquetFile(file) as opened:
                return opened.read_row_group(group, [name for name in columns if name in self.present])
        except (pa.ArrowException, OSError) as error:
            raise WeftError(f"{file} row group {group} cannot be read: {error}") from error

    def place(self, row: int) -> str:
        """File and row of a row of the split."""
        for file in self.files:
            rows = sum(int(n) for (of, _), n in zip(self.groups, self.rows, strict=True) if of == file)
            if row < rows:
                return f"{file.relative_to(self.root)} row {row}"
            row -= rows
        raise IndexError(row)

    def column(self, name: str) -> NDArray[Any] | None:
        """One small column of all row groups, in memory."""
        parts = [raw_labels(self.read(number, [name]), name) for number in range(len(self.rows))]
        return np.concatenate([part for part in parts if part is not None]) if parts and parts[0] is not None else None


class LazyImages(Sequence[bytes]):
    """Encoded images, read from disk when the first is asked for: where decoded ones are in the cache, never."""

    def __init__(self, shards: ParquetShards) -> None:
        self.shards = shards

    @cached_property
    def _loaded(self) -> list[bytes]:
        return list(join(self.shards).inputs)

    def __len__(self) -> int:
        return int(self.shards.rows.sum())

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        return self._loaded[index]


def _in_memory(shards: ParquetShards) -> Table:
    columns = shards.columns
    if columns.modality != "image":
        table = join(shards)
    else:
        labels = shards.column(columns.target) if columns.target else None
        table = Table(LazyImages(shards), labels, shards.place)
    if columns.group and columns.group in shards.present:
        table.groups = shards.column(columns.group)
    return table


def raw_inputs(table: pa.Table, columns: Columns) -> tuple[Sequence[Any], dict[int, str]]:
    """The rows' raw inputs, and what is wrong with some of them."""
    if columns.modality == "vector":
        return _vectors(table, columns.inputs), {}
    parts = [table.column(name) for name in columns.inputs]
    if columns.modality == "image":
        column = parts[0]
        if pa.types.is_struct(column.type):
            column = pa.chunked_array([chunk.field("bytes") for chunk in column.chunks], pa.binary())
        return [value or b"" for value in column.to_pylist()], {}
    faults: dict[int, str] = {}
    texts = [list(_texts(column, faults)) for column in parts]
    return (texts[0] if len(texts) == 1 else list(zip(*texts, strict=True))), faults


def raw_labels(table: pa.Table, target: str | None) -> NDArray[Any] | None:
    """The labels as numbers or words; a missing number is NaN, a missing word None."""
    if target is None or target not in table.column_names:
        return None
    values = table.column(target).to_numpy()
    return values if values.dtype.kind in "iufO" else values.astype(np.int64)


def _texts(column: pa.ChunkedArray, faults: dict[int, str]) -> Iterator[str]:
    try:
        yield from (value or "" for value in column.to_pylist())
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
    if len(columns) == 1 and not pa.types.is_primitive(columns[0].type):
        rows = columns[0].to_pylist()
        width = max((len(row or ()) for row in rows), default=0)
        ragged = [row if row is not None and len(row) == width else [np.nan] * width for row in rows]
        return np.array(ragged, dtype=np.float32).reshape(len(rows), width)
    return np.stack([column.to_numpy().astype(np.float32) for column in columns], axis=1)


def _schema(file: Path) -> pa.Schema:
    return _metadata(file).schema.to_arrow_schema()


def _metadata(file: Path) -> pq.FileMetaData:
    try:
        return pq.read_metadata(file)
    except (pa.ArrowException, OSError) as error:
        raise WeftError(f"{file} is not a readable Parquet file: {error}") from error
