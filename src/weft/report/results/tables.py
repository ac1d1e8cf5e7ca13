"""The table of a record: a leaderboard, a published table with what was measured beside it, the speeds of networks."""

from __future__ import annotations

from collections.abc import Iterator

from weft.report.charts import scatter
from weft.report.columns import columns, gigabytes, scaled
from weft.report.experiment import UNITS, figure, heading, published
from weft.report.results.markdown import Picture, Record, score, table
from weft.report.standalone import standalone

SPEED, TRAINING, COST = UNITS
SPEEDS = ("table", "row", "px", "parameters", "published", "multiply-adds", SPEED, "published", TRAINING,
          "memory, use", "training", COST, "published", "top-1, published")  # fmt: skip


def leaderboard(record: Record) -> Iterator[str]:
    """The candidates of a comparison."""
    titles = ["candidate", "kind", "score, 95 % interval", "seeds", "steps", "parameters", "multiply-adds"]
    yield from table([*titles, "core-seconds of a run"], (candidate(row) for row in record["rows"]))


def candidate(row: Record) -> list[str]:
    counts = [scaled(row[part]) if row.get(part) else "–" for part in ("parameters", "macs", "core_seconds")]
    steps = f"{row['steps']:,.0f}" if row.get("steps") else "–"
    return [row["name"], row["group"], score(row), str(row["seeds"]), steps, *counts]


def front(record: Record) -> dict[str, Picture]:
    """For e9: accuracy with its interval against measured cost, the front as a line."""
    if record["study"] != "e9" or not any(row["score"] and row["core_seconds"] for row in record["rows"]):
        return {}
    known = {column.key: column for column in columns(record["metric"])}
    families = sorted({family(row) for row in record["rows"]})
    tints = {row["name"]: families.index(family(row)) for row in record["rows"]}
    chart = scatter(record["rows"], known["core_seconds"], known["score"], tints)
    return {"": Picture("Accuracy against the cost of training", standalone(chart))}


def family(row: Record) -> str:
    """A candidate of e9 without its size: vit of vit×2."""
    return str(row["name"]).partition("×")[0]


def measured(record: Record) -> Iterator[str]:
    """A published table with what was measured beside it."""
    titles = [title for quantity in record["quantities"] for title in (heading(quantity), "published")]
    yield from table(["row", "parameters", *titles, "seeds"], (line(record, row) for row in record["rows"]))


def line(record: Record, row: Record) -> list[str]:
    cells = [cell for q in record["quantities"] for cell in (figure(row, q), published(row, q))]
    size = scaled(row["parameters"]) if row.get("parameters") else "–"
    return [row["name"], size, *cells, str(row.get("seeds") or "–")]


def speeds(record: Record) -> Iterator[str]:
    """How large, how fast and how dear networks are."""
    yield from table(SPEEDS, map(speed_cells, record["rows"]))


def speed_cells(row: Record) -> list[str]:
    """A line of that table."""
    memory = [gigabytes(value) if value else "–" for value in row["memory"]]
    count = row["published"].get("parameters")
    counts = [scaled(row["parameters"]), "–" if count is None else f"{count:g} M", scaled(row["macs"])]
    use, training = [figure(row, SPEED), published(row, SPEED)], [figure(row, TRAINING), *memory]
    cost = [figure(row, COST), published(row, COST), f"{row['top1']:g}"]
    return [str(row["table"]), row["name"], row["side"], *counts, *use, *training, *cost]


def counts(record: Record) -> Iterator[str]:
    """Specifications of networks, and what they come to."""
    sizes = ["network", "layers", "patch", "tokens", "channels", "hidden", "token hidden"]
    found = ["parameters", "without head", "multiply-adds", "published, M"]
    yield from table([*sizes, *found], map(count_cells, record["rows"]))


def count_cells(row: Record) -> list[str]:
    """A line of that table."""
    sizes = [row[part] for part in ("depth", "patch", "tokens", "channels", "hidden", "token_hidden")]
    exact = [f"{row[part]:,}" for part in ("parameters", "without_head", "macs")]
    published = "–" if row["published"] is None else f"{row['published']:g}"
    return [row["name"], *("–" if size is None else str(size) for size in sizes), *exact, published]


def claims(record: Record) -> Iterator[str]:
    """Claims are sentences alone."""
    yield from ()
