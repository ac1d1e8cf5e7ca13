"""`open_corpus`: a name or a path becomes documents with roles, and with a tokeniser the sequences of each role."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.data.corpus.config import CorpusConfig
from weft.data.corpus.documents import Documents, read_documents
from weft.data.corpus.holdout import hold_out, in_pieces

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Corpus:
    """A corpus, opened: its documents, and who gets which of them."""

    documents: Documents
    roles: dict[str, Index]
    config: CorpusConfig

    @property
    def name(self) -> str:
        return self.documents.name

    @property
    def fingerprint(self) -> str:
        """Equal for equal content, wherever it lies."""
        return self.documents.fingerprint

    @property
    def notes(self) -> list[str]:
        return self.documents.notes

    def texts(self, role: str) -> list[str]:
        """The documents of a role."""
        return [self.documents.texts[number] for number in self.roles[role]]


def open_corpus(name: str, config: CorpusConfig | None = None) -> Corpus:
    """Read all documents and hold some of them out."""
    config = config or CorpusConfig()
    documents = read_documents(name, config)
    texts, cut = in_pieces(documents.texts, name)
    roles = hold_out(texts, config, name)
    counts = {role: len(numbers) for role, numbers in roles.items()}
    held = (
        f"{len(texts):,} documents: {counts['train']:,} to learn from, {counts['validation']:,} for validation and "
        f"{counts['test']:,} for test were held out by seed {config.split_seed}"
    )
    return Corpus(Documents(name, texts, documents.fingerprint, [*documents.notes, *cut, held]), roles, config)
