"""Which documents are learnt from, which choose the best step and which report: by seed, each whole on one side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.data.batch import noise
from weft.data.corpus.config import CorpusConfig
from weft.data.corpus.sentences import sentences
from weft.data.open.groups import sentence_cut, text_groups
from weft.data.open.splits import draw_rows
from weft.errors import WeftError

Index = NDArray[np.int64]

FEW = 100  # documents below which they are cut, so that there is something to hold out
PIECE = 25  # sentences of such a piece at most: about a page


def in_pieces(texts: list[str], name: str) -> tuple[list[str], list[str]]:
    """The documents, cut into runs of sentences if there are few of them, and a sentence that says so."""
    if len(texts) >= FEW:
        return texts, []
    cut = [sentences(text) for text in texts]
    total = sum(map(len, cut))
    if total < 3:
        held = "one sentence" if total == 1 else f"{total} sentences"
        raise WeftError(f"{name} holds {held}; a corpus needs three to hold some out, and thousands to be of use")
    size = min(PIECE, max(1, total // FEW))
    pieces = ["\n".join(parts[at : at + size]) for parts in cut for at in range(0, len(parts), size)]
    return pieces, [
        f"{len(texts):,} {'document was' if len(texts) == 1 else 'documents were'} cut into {len(pieces):,} pieces "
        f"of up to {size} {'sentence' if size == 1 else 'sentences'}, so that some can be held out"
    ]


def hold_out(texts: list[str], config: CorpusConfig, name: str) -> dict[str, Index]:
    """Role -> its documents. Equal texts, and a sentence and its phrases, stay together."""
    free = np.arange(len(texts))
    parts: dict[str, Index] = {}
    for role, share in (("test", config.test_fraction), ("validation", config.val_fraction)):
        taken = _cut([texts[number] for number in free], share, noise.key(config.split_seed, role))
        parts[role], free = free[taken], free[~taken]
        if not len(parts[role]) or not len(free):
            raise WeftError(
                f"{name} has too few different texts to hold some out for validation and for test "
                f"({len(set(texts))}; a text and phrases of it stay together); give it more text"
            )
    kept = noise.permutation(noise.key(config.split_seed, "share"), len(free))[
        : max(1, round(config.train_fraction * len(free)))
    ]
    return {"train": free[np.sort(kept)], "validation": parts["validation"], "test": parts["test"]}


def _cut(texts: list[str], share: float, stream: int) -> NDArray[np.bool_]:
    phrases = sentence_cut(texts, share, stream)
    return draw_rows(None, text_groups(texts), share, stream, len(texts)) if phrases is None else phrases
