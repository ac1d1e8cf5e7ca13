"""The page of comparisons on several sets: the answers side by side, then each leaderboard."""

from __future__ import annotations

from collections.abc import Iterator

from weft.report.results.markdown import Record, plain, score, sentences, table
from weft.terminal import how_many

TITLES = ["set", "took", "first leaderboard", "the best by score", "of networks from scratch", "classical", "advice"]


def comparisons(record: Record) -> Iterator[str]:
    """What was answered on every set."""
    yield from table(TITLES, (answers(one) for one in record["sets"].values()))
    for one in record["sets"].values():
        place = [f"{one['processor']}, {how_many(one['cores'], 'core')}", f"commit {one['commit']}", one["overhead"]]
        told = "; ".join(map(plain, [one["budget"], *place]))
        yield from ("", f"## {plain(one['title'])}", "", f"{told}.", "")
        titles = ["candidate", "score, 95 % interval", "seeds", "steps", "parameters"]
        yield from table(titles, (candidate(row) for row in one["rows"]))
        yield from ("", *sentences(one, "cautions", "verdicts", "recommendation"))


def answers(one: Record) -> list[str]:
    """The line of a set."""
    known = [row for row in one["rows"] if row["score"] is not None]
    scratch = [row for row in known if "+" not in row["name"] and row["group"] not in ("control", "classical")]
    classical = [row for row in known if row["group"] == "classical"]
    first = "–" if one["first"] is None else minutes(one["first"])
    advice = one["recommendation"].partition(":")[0]
    return [one["title"], minutes(one["seconds"]), first, best(known), best(scratch), best(classical), advice]


def best(rows: list[Record]) -> str:
    if not rows:
        return "–"
    found = max(rows, key=lambda row: float(row["score"]))
    return f"{found['name']} {score(found)}"


def candidate(row: Record) -> list[str]:
    counts = ["–" if row[name] is None else f"{row[name]:,.0f}" for name in ("steps", "parameters")]
    return [row["name"], score(row), str(row["seeds"]), *counts]


def minutes(seconds: float) -> str:
    return f"{int(seconds / 60)}:{int(seconds % 60):02d} min"
