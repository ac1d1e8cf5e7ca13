"""Draws a transfer study from its folder: on the terminal, as report.html and as table.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from weft.disk import claim, read_object, write_bytes
from weft.errors import WeftError
from weft.report.experiment import render_experiment
from weft.report.results.drawing import page
from weft.studies.engine.study import read_study
from weft.studies.experiments.records import of_table
from weft.studies.experiments.registry import find_scale
from weft.studies.experiments.text_tables.drawing import computed_on, in_unit, times
from weft.studies.experiments.text_tables.forecast import Prediction, prediction_held, read_prediction
from weft.studies.experiments.text_tables.scores import CandidateScores, measure_candidate
from weft.studies.experiments.transfer_tables.design import TransferRow, questions, table_rows, task_name
from weft.studies.experiments.transfer_tables.few_shot import quantity, shot_file
from weft.studies.experiments.transfer_tables.questions import conclusion, judged
from weft.studies.experiments.transfer_tables.scales import SCALES, TransferScale
from weft.studies.results.summary import called
from weft.studies.statistics.rows import Scores
from weft.training.finetuning.config import PROBED_ROWS

TITLES = {"e3": "Table 3", "e8": "Figures 3 and 4"}
STARTS = (
    f"Fine-tuning starts with the head of a linear probe on tasks of up to {PROBED_ROWS:,} training images; on others, "
    "and in learning from scratch, the head is drawn. Each way has its usual settings: fine-tuning a smaller rate that "
    "falls linearly and is smaller in lower layers, less weight decay and an average of the weights."
)
DRAWN = (
    "Few-shot figures are means over five draws of rows, the same for all; their intervals cover seeds and test rows."
)
ASKS = {
    "e3": "What does pre-training bring, against learning the task from scratch?",
    "e8": "Do ConvNets lead while the set to learn from is small, and do attention and MLPs catch up?",
}
REFERENCE = {"Mixer-B/16 of Google, ImageNet-21k": {"cifar10": 96.8}}
NOTES = {
    "e3": "Published: fine-tuned after ImageNet-21k, and the course work's own networks from scratch, in percent.",
    "e8": "Published: curves of accuracy over the size of the set, without figures; their order is what is asked.",
}


def draw_transfer(folder: Path) -> dict[str, Any]:
    """Write report.html and table.md into the folder and return the summary that they show."""
    summary = summarise_transfer(folder)
    write_bytes(claim(folder / "report.html"), render_experiment(summary, "transfer.html.j2").encode())
    write_bytes(claim(folder / "table.md"), page(of_table(summary), "").encode())
    return summary


def summarise_transfer(folder: Path) -> dict[str, Any]:
    """Everything that the table, the charts and the page show."""
    study, prediction = read_study(folder), read_prediction(folder)
    if study is None or prediction is None:
        raise WeftError(f"{folder} holds no study yet; `weft study run` makes one, or goes on")
    name, scale = prediction.experiment, find_scale(SCALES, prediction.scale)
    rows = {row.name: row for row in table_rows(name, scale)}
    listed = {row: [run for run in study["runs"] if run["candidate"] == row] for row in rows}
    found = {row: measure_candidate(folder, runs) for row, runs in listed.items()}
    upstream = task_name(str(prediction.asked["source"]))
    measured = {part: {row: one.scores[part] for row, one in found.items() if part in one.scores}
                for part in (upstream, *prediction.tasks)}  # fmt: skip
    measured |= few_shots(folder, listed, prediction, scale)
    measured = {part: scores for part, scores in measured.items() if scores}
    judged_ = judged(measured, questions(name, scale), {row.name: row.published for row in rows.values()})
    counts = {one["name"]: one["count"].get("params") for one in study["candidates"]}
    return {
        "experiment": name, "title": TITLES[name], "question": ASKS[name],
        "source": called(study["facts"]["name"]), "scale": scale.name, "budget": study["budget"],
        "command": study["command"], "quantities": list(measured),
        "rows": [as_row(row, found[row.name], measured, counts.get(row.name), prediction) for row in rows.values()],
        "reference": [{"name": one, "published": known} for one, known in REFERENCE.items()] if name == "e3" else [],
        "orderings": judged_, "conclusion": conclusion(judged_),
        "time": prediction_held(prediction, {row: times(one) for row, one in found.items()}),
        "notes": [*study["facts"]["notes"], NOTES[name], STARTS, *([DRAWN] if name == "e8" else [])],
        "problems": [problem for one in found.values() for problem in one.problems],
        "environment": computed_on(found),
    }  # fmt: skip


def few_shots(
    folder: Path, listed: dict[str, list[dict[str, Any]]], prediction: Prediction, scale: TransferScale
) -> dict[str, dict[str, Scores]]:
    """The few-shot scores that there are, (seeds, test rows) for each row."""
    found: dict[str, dict[str, Scores]] = {}
    for task in prediction.tasks if prediction.experiment == "e8" else ():
        for shots in scale.shots:
            for row, runs in listed.items():
                paths = [shot_file(folder, run["name"], shots) for run in runs if run["part"] == task]
                scores = [np.array(read_object(path)["right"], dtype=np.float64) for path in paths if path.exists()]
                if scores:
                    found.setdefault(quantity(task, shots), {})[row] = np.stack(scores)
    return found


def as_row(
    row: TransferRow, found: CandidateScores, measured: dict[str, dict[str, Scores]], parameters: int | None,
    prediction: Prediction,
) -> dict[str, Any]:  # fmt: skip
    """A line of the table."""
    known = {part: scores[row.name] for part, scores in measured.items() if row.name in scores}
    spent = times(found)
    return {
        "name": row.name,
        "layers": None,
        "parameters": parameters,
        "published": row.published,
        "measured": {part: in_unit(part, scores) for part, scores in known.items()},
        "seeds": max((len(scores) for scores in known.values()), default=0),
        "predicted": sum(prediction.seconds.get(row.name, {}).values()) or None,
        "taken": sum(float(np.mean(taken)) for taken in spent.values()) or None,
    }
