"""Parts of a page in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

Record = dict[str, Any]


class Picture(NamedTuple):
    """A chart of a page, as an SVG file."""

    shows: str
    content: str


def plain(text: Any) -> str:
    """Text from a record as one line of Markdown that marks nothing up."""
    words = " ".join(str(text).split())
    return words.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Its lines."""
    yield f"| {' | '.join(titles)} |"
    yield f"| {' | '.join(['---'] * len(titles))} |"
    for row in rows:
        yield f"| {' | '.join(map(plain, row))} |"


def score(row: Record) -> str:
    """A score in percent with its interval."""
    if row["score"] is None:
        return "failed"
    return f"{100 * row['score']:.1f} % ({100 * row['low']:.1f}…{100 * row['high']:.1f})"


def sentences(record: Record, *parts: str) -> Iterator[str]:
    """What a record says in sentences, a bullet each."""
    for part in parts:
        said = record.get(part) or []
        yield from (f"- {plain(sentence)}" for sentence in ([said] if isinstance(said, str) else said))
