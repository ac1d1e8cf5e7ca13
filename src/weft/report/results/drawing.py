"""Draws the page of every record: `weft study draw`. Every number of a page is in its record; no page is edited."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from weft.disk import read_object, write_bytes
from weft.errors import WeftError
from weft.report.results.markdown import Picture, Record, plain, sentences
from weft.report.results.recipes import learning, recipes
from weft.report.results.sets import comparisons
from weft.report.results.tables import claims, counts, front, leaderboard, measured, speeds

QUESTIONS = {
    "e9": "Figure 5: accuracy against the cost of training, several sizes of each family",
    "e10": "Is attention, is convolution, needed? Families and controls at equal multiply-adds",
    "e11": "Common training issues: one verdict a claim",
}
SMOKE = "**Seconds of training on tiny data: it shows that the study works, and nothing about the networks.**"
BEGINNING = "Drawn from a record and never edited: `weft study draw`."


class Kind(NamedTuple):
    """How records of a kind are drawn."""

    content: Callable[[Record], Iterator[str]]
    pictures: Callable[[Record], dict[str, Picture]] = lambda _: {}
    """by the end of their file's name"""


KINDS = {
    "comparison": Kind(leaderboard, front),
    "comparisons": Kind(comparisons),
    "table": Kind(measured),
    "speeds": Kind(speeds),
    "claims": Kind(claims),
    "counts": Kind(counts),
    "recipes": Kind(recipes, learning),
}


def draw_all(folder: Path, others: Mapping[str, Record]) -> Iterator[Path]:
    """Draw the page, with its pictures, of every record in a folder and of others that are kept elsewhere, by the names
    of their pages; yields what was written."""
    found = {path.stem: read_object(path) for path in sorted(folder.glob("*.json"))}
    records = {name: record for name, record in found.items() if record.get("kind") in KINDS}
    if not records:
        raise WeftError(f"{folder} holds no records of studies; `weft study record NAME` writes one")
    kept = {name: record for name, record in others.items() if record}
    for name, record in {**records, **kept}.items():
        yield write(folder / f"{name}.md", page(record, name))
        for mark, picture in KINDS[record["kind"]].pictures(record).items():
            yield write(folder / f"{name}{mark}.svg", picture.content)


def write(path: Path, text: str) -> Path:
    write_bytes(path, text.encode())
    return path


def page(record: Record, name: str) -> str:
    """A page; the names of its pictures begin with its own."""
    return "\n".join(lines(record, name)) + "\n"


def lines(record: Record, name: str) -> Iterator[str]:
    study = str(record["study"])
    yield from (f"# {plain(record.get('question') or QUESTIONS.get(study, study))}", "", BEGINNING, "")
    facts = [plain(record[part]) for part in ("title", "budget") if record.get(part)]
    facts[1:1] = [f"{part} {plain(record[part])}" for part in ("source", "scale") if record.get(part)]
    if facts:
        yield from (f"{study}: {', '.join(facts)}.", "")
    if record.get("scale") == "smoke":
        yield from (SMOKE, "")
    yield from KINDS[record["kind"]].content(record)
    for mark, picture in KINDS[record["kind"]].pictures(record).items():
        yield from ("", f"![{plain(picture.shows)}]({name}{mark}.svg)")
    yield from ("", *sentences(record, "verdicts", "recommendation", "conclusion", "time", "notes", "problems"))
    yield from ("", *made(record))


def made(record: Record) -> Iterator[str]:
    """Where and by which command."""
    where = record.get("environment") or {}
    machine = ", ".join(str(where[part]) for part in ("processor", "platform") if where.get(part))
    versions = f"; torch {where['torch']}, weft {where['weft']} ({str(where.get('commit'))[:10]})" if where else ""
    yield f"`{record['command']}`{f' on {machine}' if machine else ''}{versions}"
