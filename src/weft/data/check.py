"""What can be wrong with a row, told before it reaches a batch."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.config import Modality
from weft.data.decode import BadImage, decode
from weft.data.labels import Labels
from weft.data.sources.table import Block, Inputs, Table

LONGEST = 1_000_000
"""Characters of a text. A longer one is a file that slipped into a column, and would stall the tokeniser."""


def examine(
    table: Table | Block, labels: Labels, modality: Modality, images: bool = False
) -> tuple[NDArray[Any], dict[int, str]]:
    """Targets of the rows, and row -> what is wrong with it. Images are decoded for it only if `images` says so."""
    targets, faults = labels.encode(table.labels, len(table.inputs))
    if modality == "vector":
        faults |= _vector_faults(np.asarray(table.inputs))
    elif modality in {"text", "pair"}:
        faults |= _text_faults(table.inputs)
    elif images:
        faults |= _image_faults(table.inputs, set(table.faults))
    return targets, faults | table.faults


def blank_rows(texts: Inputs) -> set[int]:
    """Rows with nothing but white space."""
    return {row for row, text in enumerate(texts) if not text.strip()}


def _vector_faults(rows: NDArray[Any]) -> dict[int, str]:
    bad = ~np.isfinite(rows)
    return {
        int(row): f"feature {int(np.flatnonzero(bad[row])[0])} is not a finite number ({rows[row][bad[row]][0]})"
        for row in np.flatnonzero(bad.any(axis=1))
    }


def _text_faults(texts: Inputs) -> dict[int, str]:
    faults = {}
    for row, value in enumerate(texts):
        for text in (value,) if isinstance(value, str) else value:
            if not text.strip():
                faults[row] = "the text is empty"
            elif len(text) > LONGEST:
                faults[row] = f"the text has {len(text):,} characters, more than the limit of {LONGEST:,}"
    return faults


def _image_faults(images: Inputs, known: set[int]) -> dict[int, str]:
    """Images that cannot be decoded, but for `known` rows, which may not even be files."""
    if len(images) == 0 or not isinstance(images, Sequence):
        return {}  # arrays: nothing to decode

    def fault(row: int) -> str | None:
        try:
            decode(images[row])
        except BadImage as error:
            return str(error)
        return None

    with ThreadPoolExecutor() as pool:
        rows = [row for row in range(len(images)) if row not in known]
        return {row: why for row, why in zip(rows, pool.map(fault, rows), strict=True) if why}
