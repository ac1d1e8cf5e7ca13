"""Draws an experiment from its folder: a table with the published figures beside the measured ones, and report.html."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from weft import terminal
from weft.disk import claim, write_bytes
from weft.errors import WeftError
from weft.report.columns import duration, scaled
from weft.report.experiment import figure, heading, print_orderings, published, render_experiment
from weft.studies.engine.study import read_study
from weft.studies.experiments.registry import find_scale
from weft.studies.experiments.text_tables.design import PERPLEXITY, TableCandidate, table_candidates
from weft.studies.experiments.text_tables.forecast import Prediction, prediction_held, read_prediction
from weft.studies.experiments.text_tables.orderings import conclusion, judge_orderings
from weft.studies.experiments.text_tables.scales import SCALES
from weft.studies.experiments.text_tables.scores import CandidateScores, measure_candidate
from weft.studies.experiments.text_tables.tables import EXPERIMENTS
from weft.studies.results.summary import called
from weft.studies.statistics.intervals import Estimate, mean_of
from weft.studies.statistics.rows import Scores


def draw_table(folder: Path) -> dict[str, Any]:
    """Write report.html into the folder and return the summary that it shows."""
    summary = summarise_table(folder)
    write_bytes(claim(folder / "report.html"), render_experiment(summary).encode())
    return summary


def summarise_table(folder: Path) -> dict[str, Any]:
    """Everything that the table, the charts and the page show."""
    study, prediction = read_study(folder), read_prediction(folder)
    if study is None or prediction is None:
        raise WeftError(f"{folder} holds no experiment yet; `weft study run` makes one, or goes on")
    experiment, scale = EXPERIMENTS[prediction.experiment], find_scale(SCALES, prediction.scale)
    candidates = table_candidates(experiment, scale, prediction.asked.get("encoder"))
    rows = {
        e.name: measure_candidate(folder, [r for r in study["runs"] if r["candidate"] == e.name]) for e in candidates
    }
    quantities = [PERPLEXITY] if any(e.start == "pretrained" for e in candidates) else []
    quantities += prediction.tasks
    measured = {q: {name: row.scores[q] for name, row in rows.items() if q in row.scores} for q in quantities}
    figures = {candidate.name: candidate.published for candidate in candidates}
    found = judge_orderings(measured, figures, experiment.pairs(scale), quantities)
    counts = {candidate["name"]: candidate["count"].get("params") for candidate in study["candidates"]}
    taken = {name: times(row) for name, row in rows.items()}
    return {
        "experiment": experiment.name,
        "table": experiment.table,
        "question": experiment.question,
        "source": called(study["facts"]["name"]),
        "scale": scale.name,
        "budget": study["budget"],
        "command": study["command"],
        "quantities": quantities,
        "rows": [as_row(e, rows[e.name], counts.get(e.name), prediction) for e in candidates],
        "reference": [{"name": name, "published": row} for name, row in experiment.reference.items()],
        "orderings": [ordering.as_row() for ordering in found],
        "conclusion": conclusion(found),
        "time": prediction_held(prediction, taken),
        "notes": [*study["facts"]["notes"], *study["notes"], *experiment.notes],
        "problems": [problem for row in rows.values() for problem in row.problems],
        "environment": computed_on(rows),
    }


def times(row: CandidateScores) -> dict[str, list[float]]:
    """Seconds of every finished run of a candidate."""
    return {part: [record["wall_seconds"] for record in records] for part, records in row.records.items()}


def as_row(
    candidate: TableCandidate, row: CandidateScores, parameters: int | None, prediction: Prediction
) -> dict[str, Any]:
    """A line of the table."""
    taken = times(row)
    return {
        "name": candidate.name,
        "layers": candidate.network.get("depth"),
        "parameters": trained_parameters(candidate, row) or parameters,
        "published": candidate.published,
        "measured": {quantity: in_unit(quantity, scores) for quantity, scores in row.scores.items()},
        "seeds": max((len(scores) for scores in row.scores.values()), default=0),
        "predicted": sum(prediction.seconds.get(candidate.name, {}).values()) or None,
        "taken": sum(float(np.mean(seconds)) for seconds in taken.values()) or None,
    }


def trained_parameters(candidate: TableCandidate, row: CandidateScores) -> int | None:
    """What a network on an encoder has itself, which its record knows; others are counted by formula, without heads."""
    if candidate.start != "embeddings":
        return None
    return next((int(record["parameters"]) for records in row.records.values() for record in records), None)


def in_unit(quantity: str, scores: Scores) -> dict[str, float]:
    """Mean and interval as a perplexity, or in percent."""
    value: Estimate = mean_of(scores)
    if quantity == PERPLEXITY:
        mean, low, high = math.exp(value.mean), math.exp(value.low), math.exp(min(value.high, 700.0))
    else:
        mean, low, high = 100 * value.mean, max(0.0, 100 * value.low), min(100.0, 100 * value.high)
    return {"mean": mean, "low": low, "high": high}


def computed_on(rows: dict[str, CandidateScores]) -> dict[str, Any]:
    """Where the runs were computed."""
    records = (record for row in rows.values() for found in row.records.values() for record in found)
    return next((dict(record["environment"]) for record in records if "torch" in record["environment"]), {})


def print_table(summary: dict[str, Any], console: Console | None = None) -> None:
    """The table, the orderings and the time on a terminal."""
    console = console or terminal.console(width=160)
    columns = [column for quantity in summary["quantities"] for column in (heading(quantity), "published")]
    title = f"{summary.get('title') or 'table ' + str(summary['table'])} on {summary['source']}"
    table = Table("candidate", box=None, pad_edge=False, title=title, title_justify="left")
    for title in ("layers", "parameters", *columns, "seeds", "predicted", "took"):
        table.add_column(title, justify="right")
    for row in summary["rows"]:
        cells = [cell for q in summary["quantities"] for cell in (figure(row, q), published(row, q))]
        size = scaled(row["parameters"]) if row["parameters"] else "–"
        spent = (duration(row[when]) if row[when] else "–" for when in ("predicted", "taken"))
        table.add_row(row["name"], str(row["layers"] or "–"), size, *cells, str(row["seeds"]), *spent)
    for row in summary["reference"]:
        cells = [cell for q in summary["quantities"] for cell in ("–", published(row, q))]
        table.add_row(row["name"], "–", "–", *cells, "–", "–", "–", style="dim")
    console.print(table)
    print_orderings(summary, console)
