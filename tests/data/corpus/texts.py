"""Small corpora for the tests, the same at every call."""

from __future__ import annotations

import random
from pathlib import Path

from weft.data.transform.tokenizer import Tokenizer, train_tokenizer

NOUNS = ("cat", "dog", "bird", "house", "river", "mountain", "child", "teacher")
VERBS = ("sees", "likes", "follows", "finds", "remembers")


def document(chance: random.Random, sentences: int) -> str:
    """Sentences that begin with a capital and end with a full stop."""
    made = (f"The {chance.choice(NOUNS)} {chance.choice(VERBS)} the {chance.choice(NOUNS)}." for _ in range(sentences))
    return " ".join(made)


def documents(count: int = 150) -> list[str]:
    """Documents of two to nine sentences."""
    chance = random.Random(0)
    return [document(chance, chance.randint(2, 9)) for _ in range(count)]


def write(folder: Path, count: int = 150) -> Path:
    """They in one text file, a blank line between two."""
    path = folder / "corpus.txt"
    path.write_text("\n\n".join(documents(count)) + "\n")
    return path


def tokenizer() -> Tokenizer:
    """Of so few entries that some words are several pieces."""
    return train_tokenizer(documents(), 90)
