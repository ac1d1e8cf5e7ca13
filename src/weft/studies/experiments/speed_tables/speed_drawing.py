"""Draws tables 2 and 5 from the records of their rows: on the terminal, as report.html and as table.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from weft import terminal
from weft.disk import claim, read_object, write_bytes
from weft.errors import WeftError
from weft.report.columns import duration, gigabytes, scaled
from weft.report.experiment import figure, print_orderings, published, render_experiment
from weft.studies.experiments.speed_tables.measure_row import MeasuredRow
from weft.studies.experiments.speed_tables.published_rows import ROWS, SpeedRow
from weft.studies.experiments.speed_tables.speed_orderings import COST, SPEED, TRAINING, conclusion, interval, judge
from weft.studies.experiments.speed_tables.speed_study import read_row

COLUMNS = ("table", "row", "px", "parameters", "published", "multiply-adds", SPEED, "published", TRAINING,
           "memory, use", "training", COST, "published", "top-1, published")  # fmt: skip


def draw_speeds(folder: Path) -> dict[str, Any]:
    """Write report.html and table.md into the folder and return the summary that they show."""
    summary = summarise_speeds(folder)
    write_bytes(claim(folder / "report.html"), render_experiment(summary, "speeds.html.j2").encode())
    write_bytes(claim(folder / "table.md"), markdown(summary).encode())
    return summary


def summarise_speeds(folder: Path) -> dict[str, Any]:
    """Everything that the table, the charts and the page show."""
    records = {row.key: record for row in ROWS if (record := read_row(folder, row)) is not None}
    if not records:
        raise WeftError(f"{folder} holds no rows yet; `weft study run e2` measures them, or goes on")
    return summary_of(read_object(folder / "study.json"), records)


def summary_of(study: dict[str, Any], records: dict[str, MeasuredRow]) -> dict[str, Any]:
    """The same of records at hand, by the keys of their rows."""
    rows = [as_row(row, records[row.key]) for row in ROWS if row.key in records]
    orderings = judge(records)
    smoke = study["scale"] == "smoke"
    small = (
        "Small networks stand for the published ones at this scale, which says nothing about these. " if smoke else ""
    )
    return {
        "experiment": "e2", "table": "2 and 5", "source": "this machine", "scale": study["scale"],
        "question": "How large, how fast and how dear are ConvNets, Transformers and MLPs?",
        "budget": "one core, forward passes in use and forward and backward passes of training",
        "command": study["command"], "quantities": [SPEED, TRAINING, COST], "columns": COLUMNS, "rows": rows,
        "cells": [cells(row) for row in rows], "orderings": orderings, "conclusion": small + conclusion(orderings),
        "notes": notes(rows),
        "problems": [f"{row['name']} {what}: {why}" for row in rows for what, why in row["left_out"].items()],
        "environment": next(iter(records.values())).environment,
        "time": f"Measured in {duration(taken(records))}.",
    }  # fmt: skip


def taken(records: dict[str, MeasuredRow]) -> float:
    """Seconds that all timings took; rows of one network share theirs."""
    return sum({(record.network, record.seconds): record.seconds for record in records.values()}.values())


def as_row(row: SpeedRow, record: MeasuredRow) -> dict[str, Any]:
    both = {"in use": record.use, "in training": record.training}
    return {
        "name": row.title, "table": row.table, "note": row.note, "top1": row.top1,
        "side": f"{record.use.side}" + (f", {record.training.side}" if record.use.side != record.training.side else ""),
        "parameters": record.parameters, "macs": record.macs,
        "measured": {q: value for q in (SPEED, TRAINING, COST) if (value := interval(row, record, q)) is not None},
        "published": {SPEED: row.speed, COST: row.cost, "parameters": row.parameters},
        "memory": [used.memory for used in both.values()],
        "left_out": {what: used.left_out for what, used in both.items() if used.left_out},
    }  # fmt: skip


def notes(rows: list[dict[str, Any]]) -> list[str]:
    """What the figures are, and where a network is not the published one."""
    what = (
        "Published: images a second and core, and core-days of pre-training, of TPUv3; top-1 on ImageNet in percent. "
        "Here: one core of this machine; core-days are the seconds of a training image times the published number of "
        "examples. Sides: in use, and where it differs, in training."
    )
    return [what, *(f"{row['name']} is measured as {row['note']}." for row in rows if row["note"])]


def cells(row: dict[str, Any]) -> list[str]:
    """A line of the table."""
    memory = [gigabytes(value) if value else "–" for value in row["memory"]]
    count = row["published"]["parameters"]
    counts = [scaled(row["parameters"]), "–" if count is None else f"{count:g} M", scaled(row["macs"])]
    use, training = [figure(row, SPEED), published(row, SPEED)], [figure(row, TRAINING), *memory]
    cost = [figure(row, COST), published(row, COST), f"{row['top1']:g}"]
    return [str(row["table"]), row["name"], row["side"], *counts, *use, *training, *cost]


def markdown(summary: dict[str, Any]) -> str:
    """The same as a page of Markdown."""
    lines = ["| " + " | ".join(line) + " |" for line in (COLUMNS, ["---"] * len(COLUMNS), *summary["cells"])]
    orders = [f"- {found['sentence']}" for found in summary["orderings"]]
    where = summary["environment"]
    versions = f"torch {where['torch']}, weft {where['weft']} ({where['commit']})"
    made = f"{where['processor']}, {versions}; `{summary['command']}`"
    parts = [f"# Tables 2 and 5, scale {summary['scale']}", "", *lines, "", summary["conclusion"], "", *orders, ""]
    return "\n".join([*parts, *summary["notes"], *summary["problems"], "", summary["time"], "", made, ""])


def print_speeds(summary: dict[str, Any], console: Console | None = None) -> None:
    """The table and the orderings on a terminal."""
    console = console or terminal.console(width=200)
    table = Table(box=None, pad_edge=False, title="tables 2 and 5", title_justify="left")
    for number, title in enumerate(COLUMNS):
        table.add_column(title, justify="left" if number == 1 else "right")
    for line in summary["cells"]:
        table.add_row(*line)
    console.print(table)
    print_orderings(summary, console)
