"""The page of a probe: a table of trained networks with simple classifiers, and their k-shot curves."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup
from rich.table import Table

from weft.report.curves import curves
from weft.report.page import asset, style, template

Summary = dict[str, Any]
WIDE = 110  # characters that have room for intervals
HEADINGS = {"neighbours": "k-NN", "ridge": "ridge", "logistic": "logistic"}


def titles(summary: Summary) -> list[str]:
    return ["network", "features", *HEADINGS.values(), *(f"{k}-shot" for k in summary["shots"]), "seconds"]


def cells(row: Summary, shots: list[int], whole: bool = True) -> list[str]:
    """One network: % on the test split; where there is room, the classifier that is preferred has its interval."""
    figures = [figure(row["classifiers"][name], whole and name == row["best"]) for name in HEADINGS]
    few = [figure(row["shots"][str(k)], False) for k in shots]
    return [row["name"], str(row["features"]), *figures, *few, f"{row['seconds']:.1f}"]


def figure(found: dict[str, float], whole: bool) -> str:
    span = f" ({100 * found['low']:.1f}…{100 * found['high']:.1f})" if whole else ""
    return f"{100 * found['mean']:.1f}{span}"


def probe_table(summary: Summary, width: int) -> Table:
    """The table on a terminal of some width, best first; figures are % on the test split."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    lines = [titles(summary), *(cells(row, summary["shots"], width >= WIDE) for row in summary["rows"])]
    if width < WIDE:  # features and seconds can be left out
        lines = [[*line[:1], *line[2:-1]] for line in lines]
    for number, title in enumerate(lines[0]):
        table.add_column(title, justify="right" if number else "left", overflow="fold", min_width=min(len(title), 10))
    for line in lines[1:]:
        table.add_row(*line)
    return table


def shot_curves(summary: Summary) -> str:
    """Accuracy against rows a class, with the intervals over draws and test rows as bands; "" for fewer than two."""
    shots = [float(k) for k in summary["shots"]]
    if len(shots) < 2:
        return ""
    ends: dict[str, Any] = {
        row["name"]: {end: [100 * row["shots"][f"{k:g}"][end] for k in shots] for end in ("mean", "low", "high")}
        for row in summary["rows"]
    }
    best = max(ends, key=lambda name: ends[name]["mean"][-1])
    return curves(
        {name: (shots, found["mean"]) for name, found in ends.items()},
        ("training rows a class", "% right of the test split"),
        f"k-shot accuracy of {len(ends)} networks; {best} has most at {shots[-1]:g} rows a class",
        log=(True, False),
        dots=True,
        bands={name: (found["low"], found["high"]) for name, found in ends.items()},
    )


def render_probe(summary: Summary) -> str:
    """The page as text."""
    return template("probe.html.j2").render(
        summary=summary,
        titles=titles(summary),
        lines=[cells(row, summary["shots"]) for row in summary["rows"]],
        chart=Markup(shot_curves(summary)),
        style=Markup(style()),
        script=Markup(asset("report.js")),
    )
