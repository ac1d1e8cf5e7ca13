"""The page of recipes: what each has reached, seed by seed, how it learnt, and what its parts bring."""

from __future__ import annotations

from collections.abc import Iterator

from weft.report.curves import curves
from weft.report.results.markdown import Picture, Record, plain, table
from weft.report.standalone import standalone

TITLES = ["recipe", "network, parameters", "split", "figure", "seeds", "epochs", "core time", "processor"]


def recipes(record: Record) -> Iterator[str]:
    """A line a recipe, then what mattered in each."""
    yield from table(TITLES, (line(row) for row in record["rows"]))
    for row in record["rows"]:
        if row["note"]:
            yield from ("", f"**{plain(row['recipe'])}**: {plain(row['note'])}")
        if row.get("changes"):
            yield from ("", *changes(row["changes"]))


def changes(tried: list[Record]) -> Iterator[str]:
    """What one change at a time does to shorter runs of a recipe."""
    whole = tried[0]["score"]
    yield f"One change at a time, runs of {tried[0]['epochs']:.3g} epochs, one seed, on the validation split:"
    yield ""
    rows = ([each["what"] or "as it is", f"{100 * each['score']:.2f} %", f"{100 * (each['score'] - whole):+.2f}",
             f"{each['core_seconds'] / 60:.0f} min"] for each in tried)  # fmt: skip
    yield from table(["change", "score", "difference", "core time"], rows)


def line(row: Record) -> list[str]:
    scores = ", ".join(f"{100 * value:.2f}" for value in row["scores"])
    network = f"{row['model']}, {row['parameters']:,}"
    return [row["recipe"], network, row["split"], row["figure"], scores, f"{row['epochs']:.3g}", row["core_time"],
            row["processor"]]  # fmt: skip


def learning(record: Record) -> dict[str, Picture]:
    """For every recipe its scores on validation, a line a seed."""
    found = {}
    for row in record["rows"]:
        series = {f"seed {seed}": (epochs, values) for seed, (epochs, values) in row["curves"].items()}
        chart = curves(series, ("epoch", f"{row['metric']} on validation"), f"{row['recipe']}: {row['figure']}")
        mark = f"-{row['recipe'].replace('/', '-')}"
        found[mark] = Picture(f"Validation scores of {row['recipe']} over its epochs", standalone(chart))
    return found
