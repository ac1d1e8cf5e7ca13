"""Arrays, lists and tables in memory: what they hold, and a source made of them, for the estimators.

Series and tables of pandas, polars and pyarrow are known by their methods; none of these libraries is imported.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.config import Modality, SourceConfig, Task
from weft.data.fingerprint import digest
from weft.data.source import Source
from weft.data.sources.table import Table
from weft.data.split import MemorySplit
from weft.errors import WeftError
from weft.training.pictures import is_picture, is_pillow, listed, stacked


@dataclass(frozen=True)
class Examples:
    """Inputs and what they are."""

    modality: Modality
    rows: Any  # vectors as they were given; texts; pairs of texts; uint8 (n, channels, height, width), or a list

    def __len__(self) -> int:
        return len(self.rows)


def recognise(inputs: Any) -> Examples:
    """Texts (a list, a column), pairs of them (two columns), images (arrays, Pillow images), else vectors."""
    rows = rows_of(inputs)
    if isinstance(rows, np.ndarray):
        return Examples("image", stacked(rows)) if rows.ndim in (3, 4) else Examples("vector", inputs)
    first = next((row for row in rows if not is_missing(row)), None) if isinstance(rows, list) else None
    if is_picture(first):
        return Examples("image", alike(listed(rows)))
    if isinstance(first, str) or is_row_of_texts(first):
        texts = [checked_text(row, number) for number, row in enumerate(rows)]
        return Examples(one_kind(texts), texts)
    if isinstance(rows, list) and first is not None and np.ndim(first) >= 2:
        return recognise(np.asarray(rows))
    return Examples("vector", inputs)


def rows_of(inputs: Any) -> Any:
    """The inputs one by one: a list, an array of numbers, or what else can be walked through as it is."""
    if isinstance(inputs, str | bytes | os.PathLike) or type(inputs) is dict or is_pillow(inputs):
        raise WeftError(f"several inputs are expected, this is one ({type(inputs).__name__}); put it into a list")
    if hasattr(inputs, "to_pydict"):  # pyarrow's tables
        return list(zip(*inputs.to_pydict().values(), strict=True))
    if hasattr(inputs, "to_pylist"):  # pyarrow's arrays
        return inputs.to_pylist()
    found = inputs.to_numpy() if hasattr(inputs, "to_numpy") else inputs  # series and tables of pandas and polars
    if hasattr(found, "__array__"):
        found = np.asarray(found)
        return found.tolist() if found.dtype.kind in "OUT" else found
    return list(found) if isinstance(found, tuple) else found


def is_missing(value: Any) -> bool:
    """None, and the NaN and NA that stand for it."""
    return value is None or (isinstance(value, float) and value != value) or type(value).__name__ == "NAType"


def is_row_of_texts(row: Any) -> bool:
    """Whether a row of a table, or a pair, holds texts."""
    if not isinstance(row, list | tuple):
        return False
    return all(isinstance(cell, str) or is_missing(cell) for cell in row) and not all(map(is_missing, row))


def checked_text(row: Any, number: int) -> str | tuple[str, str]:
    """A text or a pair of texts, or the sentence why it is neither."""
    cells = list(row) if isinstance(row, list | tuple) else [row]
    for cell in cells:
        if not isinstance(cell, str):
            what = repr(cell) if is_missing(cell) or isinstance(cell, int | float) else f"a {type(cell).__name__}"
            raise WeftError(f"row {number} (counted from 0) holds {what} in place of a text; fill it or leave it out")
    if len(cells) not in (1, 2):
        raise WeftError(f"row {number} holds {len(cells)} texts; give one text a row, or two for a pair")
    return cells[0] if len(cells) == 1 else (cells[0], cells[1])


def one_kind(texts: list[Any]) -> Modality:
    """Whether all rows are texts, or all are pairs."""
    pair = isinstance(texts[0], tuple)
    for number, text in enumerate(texts):
        if isinstance(text, tuple) != pair:
            raise WeftError(f"row 0 is {'a pair' if pair else 'one text'} and row {number} is not; give one kind only")
    return "pair" if pair else "text"


def alike(images: list[NDArray[np.uint8]]) -> list[NDArray[np.uint8]]:
    """Images with one number of channels: grey ones among coloured ones are repeated."""
    counts = {len(image) for image in images}
    if len(counts) == 1:
        return images
    if counts != {1, 3}:
        raise WeftError(f"the images have {' and '.join(map(str, sorted(counts)))} channels; give all of them the same")
    return [np.repeat(image, 3, 0) if len(image) == 1 else image for image in images]


def source_of(examples: Examples, targets: NDArray[Any], task: Task, classes: list[str]) -> Source:
    """A source whose only examples are these; all of them are for training.

    Selection reads them too, since there are no others: an estimator keeps its last weights, not its best.
    """
    table = Table(inputs=examples.rows, labels=targets, place=lambda row: f"row {row}")
    split = MemorySplit(table, np.arange(len(targets)), targets, "given")
    return Source(
        name="arrays",
        modality=examples.modality,
        task=task,
        classes=classes,
        splits={"train": split, "select": split},
        files={"inputs": digest(*content(examples.rows))},
        notes=[],
        config=SourceConfig(),
    )


def content(rows: Any) -> Iterable[str | bytes]:
    """What tells inputs from others: the cache knows them by it."""
    for part in [rows] if isinstance(rows, np.ndarray) else rows:
        if isinstance(part, np.ndarray):
            yield f"{part.dtype} {part.shape}"
            yield part.tobytes()
        else:
            yield json.dumps(part)
