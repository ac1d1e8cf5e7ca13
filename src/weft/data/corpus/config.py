"""How a corpus is read and cut into word ids, as run.yaml keeps it. This module must not import torch."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CorpusConfig:
    """Which documents there are, and which of them are held out."""

    split: tuple[str, ...] | None = None
    """Splits to read, such as unsupervised; by default all but those held out for testing and validation."""
    column: str | None = None
    """Column that holds the text; needed only where it cannot be told from the names."""
    documents: Literal["auto", "files", "paragraphs", "lines"] = "auto"
    """What a document is in text files: the whole file, what blank lines separate, or a line; auto is paragraphs in a
    file with blank lines, else the file. A row of a table is always one."""
    split_seed: int = 0
    """Decides which documents are held out; apart from --seed, so that runs of several seeds share them."""
    val_fraction: float = Field(default=0.02, gt=0.0, lt=0.5)
    """Share of the documents held out for validation: the best step is chosen on them."""
    test_fraction: float = Field(default=0.02, gt=0.0, lt=0.5)
    """Share of the documents held out for test: the final figures are measured on them."""
    train_fraction: float = Field(default=1.0, gt=0.0, le=1.0)
    """Share of the training documents to learn from; a smaller share is part of a larger one."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class TokenizingConfig:
    """How text becomes word ids."""

    tokenizer: str | None = None
    """vocab.txt, tokenizer.json or a folder with one of them; by default one is trained on the training documents."""
    vocab_size: int = Field(default=30_000, ge=64)
    """Words and word pieces of a vocabulary that is trained."""
    lowercase: bool = True
    """Fold case and accents, as uncased BERT does, in a vocabulary that is trained."""
    max_length: int = Field(default=128, ge=8)
    """Tokens of a sequence, the markers [CLS] and [SEP] included."""
    pack: bool = True
    """Fill every sequence, going on from one document to the next; otherwise a document starts a new one. Pairs of
    next-sentence prediction are never packed."""
