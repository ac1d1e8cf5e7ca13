"""What a reader of scores has to know first: test rows that were learnt from, one class that has nearly all rows."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np

from weft.data.open.source import Source
from weft.data.open.splits import MemorySplit, Split, spread

MOST = 20_000  # training rows that test rows are looked for among
CHUNK = 512  # rows that are read at a time
LOPSIDED = 0.8  # of the test rows are of one class, from which on accuracy says little


def cautions(source: Source) -> list[str]:
    """Sentences for the top of a page; none where nothing is amiss."""
    return [*repeated_rows(source), *lopsided(source)]


def repeated_rows(source: Source) -> Iterator[str]:
    """Test rows that occur in the training split, letter for letter or pixel by pixel."""
    train, test = source.splits["train"], source.splits["test"]
    if not isinstance(train, MemorySplit) or not isinstance(test, MemorySplit):
        return  # which would have to be read twice
    seen = set(prints(train))
    again = sum(value in seen for value in prints(test))
    if again:
        among = f" (among {MOST:,} of them)" if len(train) > MOST else ""
        yield f"{again:,} of {len(test):,} test rows occur in the training split{among}, so scores come out too high."


def prints(split: Split) -> Iterator[int]:
    """A number for each row, the same for the same input."""
    rows = spread(len(split), MOST)
    for first in range(0, len(rows), CHUNK):
        for raw in split.read(rows[first : first + CHUNK])[0]:
            yield fingerprint(raw)


def fingerprint(raw: Any) -> int:
    """The same for inputs that are the same."""
    data = raw if isinstance(raw, bytes) else raw.tobytes() if isinstance(raw, np.ndarray) else str(raw).encode()
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def lopsided(source: Source) -> Iterator[str]:
    """One class that most test rows belong to."""
    if source.task not in ("classes", "binary"):
        return
    counts = np.bincount(source.splits["test"].targets.astype(np.int64), minlength=len(source.classes))
    share = counts.max() / max(counts.sum(), 1)
    if share >= LOPSIDED:
        name = source.classes[int(counts.argmax())]
        yield (
            f"{share:.0%} of the test rows are {name!r}: always answering that has an accuracy of {share:.1%}; "
            "balanced accuracy and macro-F1 tell more (--metric balanced_accuracy)."
        )
