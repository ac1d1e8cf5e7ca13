"""Arrays and lists in memory as a source, for the estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.config import Modality, SourceConfig, Task
from weft.data.source import Source
from weft.data.sources.table import Table
from weft.data.split import MemorySplit
from weft.errors import WeftError


def modality_of(inputs: Any) -> Modality:
    """What inputs are: texts, images (an array (n, channels, height, width) of uint8), else vectors (n, features)."""
    if isinstance(inputs, list | tuple | np.ndarray) and len(inputs) and isinstance(inputs[0], str):
        return "text"
    array = np.asarray(inputs) if not hasattr(inputs, "ndim") else inputs
    if array.ndim != 4:
        return "vector"
    if array.dtype != np.uint8:
        raise WeftError(f"images must be uint8, (n, channels, height, width); these are {array.dtype}")
    return "image"


def source_of(inputs: Any, targets: NDArray[Any], task: Task, classes: list[str]) -> Source:
    """A source whose only examples are these; all of them are for training.

    Selection reads them too, since there are no others: an estimator keeps its last weights, not its best.
    """
    rows: Any = inputs if isinstance(inputs, np.ndarray) and inputs.ndim == 2 else list(inputs)
    table = Table(inputs=rows, labels=targets, place=lambda row: f"row {row}")
    split = MemorySplit(table, np.arange(len(targets)), targets, "given")
    return Source(
        name="arrays",
        modality=modality_of(inputs),
        task=task,
        classes=classes,
        splits={"train": split, "select": split},
        files={},
        notes=[],
        config=SourceConfig(),
    )
