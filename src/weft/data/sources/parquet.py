"""Parquet in the Hugging Face layout: a file, or a folder of them, one or more a split. A block is a row group."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from weft.data.config import SourceConfig
from weft.data.read.cache import digest_files
from weft.data.sources.arrow import raw_inputs, raw_labels
from weft.data.sources.columns import Columns, columns_of, variety
from weft.data.sources.table import Block, Reading, Shards, Table, join, leading, missing, regular_files, split_names
from weft.errors import WeftError


def read_parquet(path: Path, config: SourceConfig) -> Reading:
    """A Parquet file or a folder of them, in memory or, when larger than `config.memory`, block by block."""
    root = path if path.is_dir() else path.parent
    files = regular_files(path, ".parquet")
    splits = split_names(files, root)
    first = leading(splits)
    columns = columns_of(_schema(first), config, first.name, lambda name: _variety(first, name))
    large = sum(file.stat().st_size for file in files) > config.memory
    stream = large if config.stream is None else config.stream
    tables: dict[str, Table | Shards] = {}
    for split, members in splits.items():
        shards = ParquetShards(members, columns, root)
        tables[split] = shards if stream else _in_memory(shards)
    content, notes = digest_files(files, root), list(columns.notes)
    told = (columns.names, columns.features, notes, columns.target, columns.spare)
    return Reading(columns.modality, tables, content, *told)


def _variety(file: Path, name: str) -> tuple[int, int]:
    """Different values, and values, of a column in the first row group of a file."""
    with pq.ParquetFile(file) as opened:
        return variety(opened.read_row_group(0, [name]).column(name)) if opened.num_row_groups else (0, 0)


class ParquetShards:
    """Row groups of several files, read one at a time, and of their columns only those that are used."""

    def __init__(self, files: list[Path], columns: Columns, root: Path) -> None:
        self.files, self.columns, self.root = files, columns, root
        self.present = set(_schema(files[0]).names)
        self.groups: list[tuple[Path, int]] = []
        rows: list[int] = []
        for file in files:
            metadata = _metadata(file)
            needed = {name for name in columns.wanted if name in self.present or name in columns.inputs}
            if lacking := needed - set(_schema(file).names):
                lacked = ", ".join(sorted(lacking))
                raise WeftError(f"{file} lacks the columns {lacked}, which other files have; add them, or use --inputs")
            self.groups += [(file, number) for number in range(metadata.num_row_groups)]
            rows += [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        self.rows = np.array(rows, dtype=np.int64)
        self.labelled = columns.target in self.present and not self._hidden()

    def __len__(self) -> int:
        return int(self.rows.sum())

    def block(self, number: int) -> Block:
        """Row group `number`."""
        table = self.read(number, self.columns.wanted)
        inputs, faults = raw_inputs(table, self.columns)
        return Block(inputs, raw_labels(table, self.columns.target) if self.labelled else None, faults)

    def read(self, number: int, columns: list[str]) -> pa.Table:
        """Some columns of row group `number`; those that this split lacks are left out."""
        file, group = self.groups[number]
        try:
            with pq.ParquetFile(file) as opened:
                return opened.read_row_group(group, [name for name in columns if name in self.present])
        except (pa.ArrowException, OSError) as error:
            raise WeftError(f"{file} row group {group} cannot be read ({error}); write or fetch it anew") from error

    def place(self, row: int) -> str:
        """File and row of a row of the split."""
        for file in self.files:
            rows = sum(int(n) for (of, _), n in zip(self.groups, self.rows, strict=True) if of == file)
            if row < rows:
                return f"{file.relative_to(self.root)} row {row}"
            row -= rows
        raise IndexError(row)

    def label_values(self) -> set[Any]:
        """The distinct raw labels: one pass over the target's column, a row group at a time."""
        assert self.columns.target is not None
        found: set[Any] = set()
        for number in range(len(self.rows)):
            found.update(self.read(number, [self.columns.target]).column(0).unique().to_pylist())
        return found

    def _hidden(self) -> bool:
        """Whether the labels are withheld, as in GLUE's test splits: all -1, or all missing."""
        assert self.columns.target is not None
        if len(self.rows) == 0:
            return False
        first = self.read(0, [self.columns.target]).column(0).unique().to_pylist()
        return first == [-1] or (all(map(missing, first)) and all(map(missing, self.label_values())))

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
        return len(self.shards)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        return self._loaded[index]


def _in_memory(shards: ParquetShards) -> Table:
    columns = shards.columns
    table = Table(LazyImages(shards), None, shards.place) if columns.modality == "image" else join(shards)
    if columns.target and table.labels is None:  # withheld ones too, so that their absence can be told
        table.labels = shards.column(columns.target)
    if columns.group and columns.group in shards.present:
        table.groups = shards.column(columns.group)
    return table


def _schema(file: Path) -> pa.Schema:
    try:
        return _metadata(file).schema.to_arrow_schema()
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise WeftError(f"the schema of {file} cannot be read ({error}); write or fetch it anew") from error


def _metadata(file: Path) -> pq.FileMetaData:
    try:
        return pq.read_metadata(file)
    except (pa.ArrowException, OSError) as error:
        raise WeftError(f"{file} is not a readable Parquet file ({error}); write or fetch it anew") from error
