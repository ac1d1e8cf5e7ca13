"""The word ids of a whole corpus: sentences end to end, documents as runs of sentences. Made once and cached."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.corpus.documents import Documents
from weft.data.corpus.sentences import sentences
from weft.data.read.cache import Cache, digest
from weft.data.transform.tokenizer import Tokenizer

VERSION = "1"  # raise it when the same text would be cut otherwise
TOGETHER = 2000  # documents that are cut into word pieces at a time

Index = NDArray[np.int64]


@dataclass(frozen=True)
class CorpusStore:
    """Sentence s is ids[sentences[s] : sentences[s + 1]]; document d is the sentences from documents[d] on, up to
    documents[d + 1]."""

    ids: NDArray[np.int32]
    sentences: Index
    documents: Index

    def span(self, document: int) -> slice:
        """Where the ids of a document lie."""
        return slice(*self.sentences[self.documents[document : document + 2]])

    def tokens(self, documents: Index) -> int:
        """Word pieces of some documents together."""
        ends = self.sentences[self.documents]
        return int((ends[documents + 1] - ends[documents]).sum())


def store_of(documents: Documents, tokenizer: Tokenizer) -> CorpusStore:
    """The ids of all documents, from the cache if they have been made before."""
    key = digest("corpus", VERSION, documents.fingerprint, str(len(documents)), tokenizer.content())
    made = Cache().get(key, f"word ids of the corpus {documents.name}", lambda: _build(documents.texts, tokenizer))
    return CorpusStore(**{name: tensor.numpy() for name, tensor in made.items()})


def _build(texts: list[str], tokenizer: Tokenizer) -> dict[str, Tensor]:
    parts: list[NDArray[np.int32]] = []
    lengths: list[int] = []
    counts: list[int] = []
    for first in range(0, len(texts), TOGETHER):
        cut = [sentences(text) for text in texts[first : first + TOGETHER]]
        rows = tokenizer.pieces(list(chain.from_iterable(cut)))
        counts += map(len, cut)
        lengths += map(len, rows)
        parts.append(np.fromiter(chain.from_iterable(rows), np.int32, sum(map(len, rows))))
    found = {"ids": np.concatenate(parts), "sentences": _offsets(lengths), "documents": _offsets(counts)}
    return {name: torch.from_numpy(array) for name, array in found.items()}


def _offsets(lengths: list[int]) -> Index:
    return np.concatenate([[0], np.cumsum(np.array(lengths, dtype=np.int64))])
