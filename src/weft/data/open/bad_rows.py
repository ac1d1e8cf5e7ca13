"""What is done with bad rows: stop at the first with a sentence, or leave them out, counted and reported."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.config import Modality, OnBad
from weft.data.open.labels import Labels
from weft.data.read.decode import BadImage, decode
from weft.data.sources.table import Block, Inputs, Table
from weft.errors import WeftError

_SHOWN = 5


def refusal(place: str, why: str) -> WeftError:
    """The sentence about a bad row that stops the work."""
    return WeftError(f"{place}: {why}; repair or remove it, or leave bad rows out with --on-bad skip")


@dataclass
class Ledger:
    """The bad rows of a source, each as a sentence naming file and row."""

    on_bad: OnBad
    found: list[tuple[str, str]] = field(default_factory=list)  # place, what is wrong

    @property
    def sentences(self) -> list[str]:
        return [f"{place}: {why}" for place, why in self.found]

    def enter(self, place: str, why: str) -> None:
        """Record a bad row, or refuse the source because of it."""
        if self.on_bad == "fail":
            raise refusal(place, why)
        self.found.append((place, why))

    def notes(self) -> list[str]:
        """What the record says about skipped rows: how many, and the first few by name."""
        if not self.sentences:
            return []
        more = len(self.sentences) - _SHOWN
        shown = "; ".join(self.sentences[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        rows = "1 bad row was" if len(self.sentences) == 1 else f"{len(self.sentences)} bad rows were"
        return [f"{rows} skipped: {shown}"]


# ---- What can be wrong with a row, told before it reaches a batch.

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
