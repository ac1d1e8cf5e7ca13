"""Pages of Markdown from the small records of studies that a repository keeps: a page a study, and what they cost.

Every number of a page is in its record; a page is never edited.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from weft.disk import read_object, write_bytes
from weft.errors import WeftError
from weft.report.charts import scatter
from weft.report.columns import columns, scaled
from weft.report.experiment import figure, heading, published
from weft.report.standalone import standalone

Record = dict[str, Any]
QUESTIONS = {
    "e2": "Tables 2 and 5: how large, how fast and how dear are ConvNets, Transformers and MLPs?",
    "e9": "Figure 5: accuracy against the cost of training, several sizes of each family",
    "e10": "Is attention, is convolution, needed? Families and controls at equal multiply-adds",
    "e11": "Common training issues: one verdict a claim",
}
BEGINNING = "Drawn by `weft study draw` from the record beside this page."


def draw_all(folder: Path) -> Iterator[Path]:
    """Draw the page, and where there is one the picture, of every record in a folder; yields what was written."""
    records = {path: read_object(path) for path in sorted(folder.glob("*.json"))}
    known = {path: record for path, record in records.items() if record.get("kind") in PAGES}
    if not known:
        raise WeftError(f"{folder} holds no records of studies; `weft study record NAME` writes one")
    for path, record in known.items():
        yield write(path.with_suffix(".md"), "\n".join(page(record, path.stem)) + "\n")
        if picture := front(record):
            yield write(path.with_suffix(".svg"), picture)


def write(path: Path, text: str) -> Path:
    write_bytes(path, text.encode())
    return path


def page(record: Record, name: str) -> Iterator[str]:
    """The lines of a page."""
    study = str(record["study"])
    title = record.get("question") or QUESTIONS.get(study, study)
    yield from (f"# {title}", "", BEGINNING, "")
    facts = [f"source {plain(record['source'])}"] if record.get("source") else []
    facts += [f"scale {record['scale']}"] if record.get("scale") else []
    facts += [str(record["budget"])] if record.get("budget") else []
    yield from (f"{study}: {', '.join(facts)}.", "")
    if front(record):
        yield from (f"![Accuracy against the cost of training]({name}.svg)", "")
    yield from PAGES[record["kind"]](record)
    yield from ("", *(f"- {plain(sentence)}" for sentence in record["verdicts"]))
    yield from (f"- {plain(record[part])}" for part in ("recommendation", "conclusion", "time") if record.get(part))
    yield from (f"- {plain(note)}" for part in ("notes", "problems") for note in record.get(part, []))
    yield from ("", *made(record))


def made(record: Record) -> Iterator[str]:
    """Where and by which command."""
    where = record.get("environment") or {}
    machine = ", ".join(str(where[part]) for part in ("processor", "platform") if where.get(part))
    versions = f"; torch {where['torch']}, weft {where['weft']} ({str(where.get('commit'))[:10]})" if where else ""
    yield f"`{record['command']}`{f' on {machine}' if machine else ''}{versions}"


def comparison(record: Record) -> Iterator[str]:
    """The leaderboard."""
    titles = ("candidate", "kind", "score, 95 % interval", "seeds", "steps", "parameters", "multiply-adds")
    yield f"| {' | '.join(titles)} | core-seconds of a run |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in record["rows"]:
        counts = [scaled(row[part]) if row.get(part) else "–" for part in ("parameters", "macs", "core_seconds")]
        steps = f"{row['steps']:,.0f}" if row.get("steps") else "–"
        yield "| " + " | ".join([row["name"], row["group"], score(row), str(row["seeds"]), steps, *counts]) + " |"


def score(row: Record) -> str:
    """A score in percent with its interval."""
    if row["score"] is None:
        return "failed"
    return f"{100 * row['score']:.1f} % ({100 * row['low']:.1f}…{100 * row['high']:.1f})"


def table(record: Record) -> Iterator[str]:
    """A published table with what was measured beside it."""
    titles = [title for quantity in record["quantities"] for title in (heading(quantity), "published")]
    yield "| " + " | ".join(["row", "parameters", *titles]) + " |"
    yield "|" + "---|" * (2 + len(titles))
    for row in record["rows"]:
        cells = [cell for q in record["quantities"] for cell in (figure(row, q), published(row, q))]
        size = scaled(row["parameters"]) if row.get("parameters") else "–"
        yield "| " + " | ".join([row["name"], size, *cells]) + " |"


def claims(record: Record) -> Iterator[str]:
    """Claims are sentences alone."""
    yield from ()


def front(record: Record) -> str:
    """For e9: accuracy with its interval against measured cost, the front as a line."""
    if record["study"] != "e9" or not any(row["score"] and row["core_seconds"] for row in record["rows"]):
        return ""
    known = {column.key: column for column in columns(record["metric"])}
    tints = {row["name"]: number for number, row in enumerate(record["rows"])}
    return standalone(scatter(record["rows"], known["core_seconds"], known["score"], tints))


def plain(text: Any) -> str:
    """Text from a record as one line of Markdown that marks nothing up."""
    words = " ".join(str(text).split())
    return words.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")


PAGES = {"comparison": comparison, "table": table, "claims": claims}
