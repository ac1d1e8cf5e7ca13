"""Datasets of the Hugging Face Hub by name: `hub:NAME` or `hub:NAME:CONFIGURATION`. Needs the extra `hub`."""

from __future__ import annotations

from functools import partial
from typing import Any

from weft.data.config import SourceConfig
from weft.data.sources.arrow import arrow_table
from weft.data.sources.columns import columns_of
from weft.data.sources.table import Reading
from weft.errors import WeftError


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
    columns = columns_of(first.features.arrow_schema, config, name)
    tables = {}
    for split, dataset in found.items():
        table = dataset.with_format("arrow")[:]
        tables[split] = arrow_table(table, columns, partial(_place, name, split), {})
    files = {split: str(dataset._fingerprint) for split, dataset in found.items()}
    return Reading(columns.modality, dict(tables), files, columns.names, columns.features)


def _place(name: str, split: str, row: int) -> str:
    return f"{name} {split} row {row}"
