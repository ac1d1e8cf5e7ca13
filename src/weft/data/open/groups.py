"""Which rows belong together: equal texts, phrases with the sentences that they were cut from, and equal images.

The training rows of SST-2, for instance, are phrases as well as whole sentences. Cutting such rows at random would put
a sentence on one side and its phrases on the other, and validation would measure memory.
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from weft.data.batch import noise
from weft.data.read.cache import Cache, digest
from weft.data.sources.table import Table

MANY = 0.2  # share of distinct rows that are phrases of others, from which on a set is taken for one of phrases
LONG = 64  # words; sets of longer texts (reviews, articles) are not cut into phrases


def text_groups(texts: list[Any]) -> NDArray[np.int64] | None:
    """(rows,) group numbers: rows with the same text, or pairs with the same first text; None if none occurs twice."""
    numbers: dict[str, int] = {}
    firsts = (text if isinstance(text, str) else text[0] for text in texts)
    groups = np.array([numbers.setdefault(text, len(numbers)) for text in firsts], dtype=np.int64)
    return groups if len(numbers) < len(texts) else None


def equal_images(table: Table, rows: NDArray[np.int64], *source: str) -> NDArray[np.int64]:
    """(rows of the table,) for each of `rows` the first of them with the same image; `source` tells the table apart.

    Encoded images are compared once and for all: they may lie on the disk, unread where decoded ones are in the cache.
    """
    key = digest("equal images", *source, table.name, rows.tobytes())

    def build() -> dict[str, torch.Tensor]:
        return {"first": torch.from_numpy(_first_equals(table, rows))}

    if key not in table.stores:
        at_hand = table.prints is not None or isinstance(table.inputs, np.ndarray)
        table.stores[key] = build() if at_hand else Cache().get(key, f"equal images of {table.name}", build)
    first: torch.Tensor = table.stores[key]["first"]
    return first.numpy()


def _first_equals(table: Table, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    seen: dict[Hashable, int] = {}
    found = np.arange(len(table), dtype=np.int64)
    for row in rows.tolist():
        found[row] = seen.setdefault(_print(table.inputs[row]) if table.prints is None else table.prints[row], row)
    return found


def _print(image: Any) -> Hashable:
    """A digest of an image's bytes; of pixels with their shape."""
    if isinstance(image, bytes):
        return blake2b(image, digest_size=16).digest()
    return image.shape, blake2b(image.tobytes(), digest_size=16).digest()


def equal_groups(numbers: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """(rows,) group numbers of rows with the same number: where the first of them is; None if none occurs twice."""
    distinct, firsts, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    return firsts[inverse] if len(distinct) < len(numbers) else None


def sentence_cut(texts: list[Any], share: float, stream: int) -> NDArray[np.bool_] | None:
    """(rows,) True for about `share` of the sentences and for every row that is a phrase of one of them.

    None where the rows are not phrases of each other. A sentence is a row that no other row contains.
    """
    distinct = set(texts)
    if not all(isinstance(text, str) and text.count(" ") < LONG for text in distinct):
        return None
    phrases_of = _phrases(distinct)
    if len(phrases_of) > (1 - MANY) * len(distinct):
        return None
    sentences = sorted(phrases_of)
    taken = noise.bits(stream, np.arange(len(sentences))).argsort(kind="stable")[
        : max(1, round(share * len(sentences)))
    ]
    inside = set().union(*(phrases_of[sentences[number]] for number in taken))
    return np.array([text in inside for text in texts], dtype=bool)


def _phrases(texts: set[str]) -> dict[str, set[str]]:
    """Sentence -> itself and the rows that are phrases of it, a phrase being a run of its words."""
    covered: set[str] = set()
    found: dict[str, set[str]] = {}
    for text in sorted(texts, key=lambda text: (-len(text), text)):
        if text not in covered:
            found[text] = {run for run in _runs(text) if run in texts}
            covered |= found[text]
    return found


def _runs(text: str) -> list[str]:
    """All runs of consecutive words, the whole text among them."""
    starts = [0, *(at + 1 for at, letter in enumerate(text) if letter == " ")]
    ends = [*(start - 1 for start in starts[1:]), len(text)]
    return [text[start:end] for first, start in enumerate(starts) for end in ends[first:]]
