"""The tokeniser of a corpus: the one that was asked for, or WordPiece trained on its training documents, once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from tokenizers import Tokenizer as Library

from weft.data.corpus.config import TokenizingConfig
from weft.data.corpus.corpus import Corpus
from weft.data.open.splits import spread
from weft.data.read.cache import Cache, digest
from weft.data.transform.tokenizer import MARKERS, Tokenizer, alphabet, train_tokenizer
from weft.errors import WeftError

LETTERS = 20_000_000
"""Characters that a vocabulary is learnt from: some ten seconds, and enough for 30,000 pieces."""


def tokenizer_of(corpus: Corpus, config: TokenizingConfig) -> Tokenizer:
    """Load the tokeniser that `config` names, or train one."""
    if config.tokenizer is not None:
        return Tokenizer.load(config.tokenizer)[0]
    texts = sample(corpus.texts("train"), LETTERS)

    def build() -> dict[str, torch.Tensor]:
        check_alphabet(texts, config, corpus.name)
        made = train_tokenizer(texts, config.vocab_size, lowercase=config.lowercase)
        return {"json": torch.frombuffer(bytearray(made.content().encode()), dtype=torch.uint8)}

    key = digest("vocabulary, all letters", str(config.vocab_size), str(not config.lowercase), *texts)
    stored = Cache().get(key, f"vocabulary of the corpus {corpus.name}", build)["json"]
    return Tokenizer(Library.from_str(stored.numpy().tobytes().decode()))


def sample(texts: list[str], letters: int) -> list[str]:
    """Documents spread evenly over all, about so many characters of them at most."""
    total = sum(map(len, texts))
    if total <= letters:
        return texts
    chosen = spread(len(texts), int(len(texts) * letters / total))
    return [texts[number] for number in chosen]


def check_alphabet(texts: list[str], config: TokenizingConfig, name: str) -> None:
    """Refuse a vocabulary that has no room for the letters: each is an entry at the start of a word and one inside."""
    letters = len(alphabet(texts, lowercase=config.lowercase))
    need = len(MARKERS) + 2 * letters
    if need > config.vocab_size:
        raise WeftError(
            f"a vocabulary of {config.vocab_size:,} is smaller than the alphabet of {name}: its {letters:,} letters "
            f"need {need:,} entries before the first word; use --vocab-size {4 * need} or more"
        )


@dataclass(frozen=True)
class Fit:
    """How well a vocabulary suits a text."""

    pieces: float
    """word pieces for each run of letters between blanks"""
    unknown: float
    """share of the pieces that are [UNK]"""


def fit_of(tokenizer: Tokenizer, texts: list[str]) -> Fit:
    """Pieces a word and share of unknown ones."""
    rows = tokenizer.pieces(texts)
    total, words = sum(map(len, rows)), sum(len(text.split()) for text in texts)
    unknown = sum(row.count(tokenizer.unk_id) for row in rows)
    return Fit(total / max(words, 1), unknown / max(total, 1))
