"""Which rows of a text set belong together: equal texts, and phrases with the sentences that they were cut from.

The training rows of SST-2, for instance, are phrases as well as whole sentences. Cutting such rows at random would put
a sentence on one side and its phrases on the other, and validation would measure memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.batch import noise

MANY = 0.2  # share of distinct rows that are phrases of others, from which on a set is taken for one of phrases
LONG = 64  # words; sets of longer texts (reviews, articles) are not cut into phrases


def text_groups(texts: list[Any]) -> NDArray[np.int64] | None:
    """(rows,) group numbers: rows with the same text, or pairs with the same first text; None if none occurs twice."""
    numbers: dict[str, int] = {}
    firsts = (text if isinstance(text, str) else text[0] for text in texts)
    groups = np.array([numbers.setdefault(text, len(numbers)) for text in firsts], dtype=np.int64)
    return groups if len(numbers) < len(texts) else None


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
