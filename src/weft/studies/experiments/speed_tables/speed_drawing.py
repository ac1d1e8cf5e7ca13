"""Draws tables 2 and 5 from the records of their rows: on the terminal, as report.html and as table.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from weft import terminal
from weft.disk import claim, read_object, write_bytes
from weft.errors import WeftError
from weft.report.columns import duration
from weft.report.experiment import print_orderings, render_experiment
from weft.report.results.drawing import page
from weft.report.results.tables import SPEEDS, speed_cells
from weft.studies.experiments.records import of_table
from weft.studies.experiments.speed_tables.measure_row import MeasuredRow
from weft.studies.experiments.speed_tables.published_rows import ROWS, SpeedRow
from weft.studies.experiments.speed_tables.speed_orderings import COST, SPEED, TRAINING, conclusion, interval, judge
from weft.studies.experiments.speed_tables.speed_study import read_row


def draw_speeds(folder: Path) -> dict[str, Any]:
    """Write report.html and table.md into the folder and return the summary that they show."""
    summary = summarise_speeds(folder)
    write_bytes(claim(folder / "report.html"), render_experiment(summary, "speeds.html.j2").encode())
    write_bytes(claim(folder / "table.md"), page(of_table(summary) | {"kind": "speeds"}, "").encode())
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
        "experiment": "e2", "title": "Tables 2 and 5", "source": "this machine", "scale": study["scale"],
        "question": "How large, how fast and how dear are ConvNets, Transformers and MLPs?",
        "budget": "one core, forward passes in use and forward and backward passes of training",
        "command": study["command"], "quantities": [SPEED, TRAINING, COST], "columns": SPEEDS, "rows": rows,
        "cells": [speed_cells(row) for row in rows],
        "orderings": orderings, "conclusion": small + conclusion(orderings),
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
        "timings": {what: [round(value, 5) for value in used.seconds] for what, used in both.items()},
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


def print_speeds(summary: dict[str, Any], console: Console | None = None) -> None:
    """The table and the orderings on a terminal."""
    console = console or terminal.console(width=200)
    table = Table(box=None, pad_edge=False, title="tables 2 and 5", title_justify="left")
    for number, title in enumerate(SPEEDS):
        table.add_column(title, justify="left" if number == 1 else "right")
    for line in summary["cells"]:
        table.add_row(*line)
    console.print(table)
    print_orderings(summary, console)
