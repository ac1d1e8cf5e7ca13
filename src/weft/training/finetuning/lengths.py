"""Which texts do not fit: they are cut, of a pair the longer text first, and how many is said."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weft.data.batch.stores import token_store
from weft.data.open.source import Source
from weft.data.open.splits import MemorySplit
from weft.data.transform.transforms import TextTransform


def cut_note(source: Source, transform: TextTransform) -> Iterator[str]:
    """A sentence about the training texts that are longer than the network, if there are any."""
    split = source.splits["train"]
    if not isinstance(split, MemorySplit):  # streamed texts are read when they are needed, and not counted
        return
    lengths = token_store(source, split, transform).lengths[split.rows]
    full = np.flatnonzero(lengths == transform.max_length)  # cut, or just as long
    longer = transform.tokenizer.encode(list(split.read(full)[0]), transform.max_length + 1) if len(full) else []
    count = sum(len(ids) > transform.max_length for ids, _ in longer)
    if count:
        what, how = ("pairs", ", the longer text first") if source.modality == "pair" else ("texts", "")
        yield f"{count:,} of {len(split):,} training {what} are longer than {transform.max_length} tokens: cut{how}"
