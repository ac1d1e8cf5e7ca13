"""What can be wrong with a row of text or of a vector, told before the first batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.data.config import Modality
from weft.data.sources.table import Block, Table

LONGEST = 1_000_000
"""Characters of a text. A longer one is a file that slipped into a column, and would stall the tokeniser."""


def faults_of(table: Table | Block, modality: Modality) -> dict[int, str]:
    """Row -> what is wrong with its input. Images are judged when they are decoded."""
    if modality == "vector":
        return _vector_faults(np.asarray(table.inputs))
    if modality in {"text", "pair"}:
        return _text_faults(table.inputs)
    return {}


def _vector_faults(rows: np.ndarray) -> dict[int, str]:
    bad = ~np.isfinite(rows)
    return {
        int(row): f"feature {int(np.flatnonzero(bad[row])[0])} is not a finite number ({rows[row][bad[row]][0]})"
        for row in np.flatnonzero(bad.any(axis=1))
    }


def _text_faults(texts: Sequence[Any]) -> dict[int, str]:
    faults = {}
    for row, value in enumerate(texts):
        for text in (value,) if isinstance(value, str) else value:
            if not text.strip():
                faults[row] = "the text is empty"
            elif len(text) > LONGEST:
                faults[row] = f"the text has {len(text):,} characters, more than the limit of {LONGEST:,}"
    return faults
