"""A study's results as one small file that can be kept in a repository: numbers and sentences, no weights, no curves.

`report/results/` draws pages from such files; it knows nothing else of a study.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.disk import write_json
from weft.errors import WeftError

if TYPE_CHECKING:
    from weft.training.recipes.evidence import SeedRun

ROW = ("name", "group", "score", "low", "high", "seeds", "steps", "parameters", "macs", "core_seconds")
TABLE = ("question", "scale", "source", "budget", "command", "quantities", "conclusion", "time", "notes", "problems",
         "environment")  # fmt: skip
LINE = ("name", "parameters", "seeds", "table", "side", "macs", "memory", "top1", "timings")  # of them what there is


def keep_record(name: str, scale: str, folder: Path, results: Path) -> Path:
    """Write the record of the study in `folder`; returns its path."""
    record = {"study": name, **RECORDED[name](folder)} if name in RECORDED else None
    if record is None:
        raise WeftError(f"{name} has no results to keep; those of {', '.join(RECORDED)} have")
    results.mkdir(parents=True, exist_ok=True)
    path = results / f"{folder.name.removesuffix('-cpu')}.json"
    if "command" in record:
        record["command"] = anywhere(record["command"])
    write_json(path, {"scale": scale, **record})
    return path


def anywhere(command: str) -> str:
    """A command without the folder that its results went to, which is one machine's own."""
    return re.sub(r" --output[ =]('[^']*'|\S+)", "", command)


def counts_record(folder: Path) -> dict[str, Any]:
    """Counts of tables 1 and 4: computed, so the folder has no part in them."""
    from weft.studies.experiments.e1_counts import specifications

    found = specifications()
    known = [spec for spec in found if spec.published is not None]
    met = f"{sum(bool(spec.agrees) for spec in known)} of {len(known)} published counts are met to their printed digits"
    return {
        "kind": "counts",
        "scale": "",
        "title": "tables 1 and 4",
        "question": "How large are MLP-Mixer and gMLP?",
        "command": "weft study run e1",
        "rows": [asdict(spec) for spec in found],
        "verdicts": [f"{met}, with or without the classifier."],
    }


def comparison_record(folder: Path) -> dict[str, Any]:
    """What a comparison came to."""
    from weft.studies.results.load import collect
    from weft.studies.results.summary import summarise

    return of_comparison(summarise(collect(folder)))


def of_comparison(summary: dict[str, Any]) -> dict[str, Any]:
    """The part of a comparison's summary that is kept."""
    return {
        "kind": "comparison",
        "source": summary["source"]["name"],
        "metric": summary["metric"],
        "budget": summary["budget"],
        "command": summary["command"],
        "rows": [{name: rounded(row.get(name)) for name in ROW} for row in summary["rows"]],
        "verdicts": [verdict["sentence"] for verdict in summary["verdicts"]],
        "recommendation": summary["recommendation"],
        "notes": summary["notes"],
        "problems": summary["problems"],
        "environment": summary["environment"],
    }


def rounded(value: Any) -> Any:
    return float(f"{value:.5g}") if isinstance(value, float) else value


def claims_record(folder: Path) -> dict[str, Any]:
    """What the claims of e11 came to."""
    from weft.studies.engine.study import read_stored, read_study
    from weft.studies.experiments.e11_training_issues import FILE, JudgedClaim

    if not (folder / FILE).is_file():
        raise WeftError(f"{folder} has no verdicts yet; `weft study run e11` makes them, or goes on")
    claims = read_stored(folder / FILE, list[JudgedClaim], "`weft study run e11` judges again")
    study = read_study(folder) or {}
    source = study.get("facts", {}).get("name", "")
    return {
        "kind": "claims",
        "source": source,
        "command": study.get("command", ""),
        "verdicts": [claim.sentence for claim in claims],
    }


def text_record(folder: Path) -> dict[str, Any]:
    from weft.studies.experiments.text_tables.drawing import summarise_table

    return of_table(summarise_table(folder))


def transfer_record(folder: Path) -> dict[str, Any]:
    from weft.studies.experiments.transfer_tables.transfer_drawing import summarise_transfer

    return of_table(summarise_transfer(folder))


def speed_record(folder: Path) -> dict[str, Any]:
    from weft.studies.experiments.speed_tables.speed_drawing import summarise_speeds

    return of_table(summarise_speeds(folder)) | {"kind": "speeds"}


def of_table(summary: dict[str, Any]) -> dict[str, Any]:
    """The part of a published table's summary that is kept."""
    return {
        "study": summary["experiment"],
        "kind": "table",
        "title": summary.get("title") or f"table {summary['table']}",
        **{name: summary[name] for name in TABLE},
        "rows": [kept_line(row) for row in (*summary["rows"], *summary.get("reference", []))],
        "verdicts": [ordering["sentence"] for ordering in summary["orderings"]],
    }


def kept_line(row: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a row; one that is for reference alone has published ones only."""
    return {
        **{name: row[name] for name in LINE if row.get(name) is not None},
        "measured": {
            quantity: {end: rounded(value) for end, value in found.items()}
            for quantity, found in row.get("measured", {}).items()
        },
        "published": {name: value for name, value in row["published"].items() if value is not None},
    }


def recipes_record() -> dict[str, Any]:
    """What the recipes have reached, from the evidence that is kept with them; empty where there is none."""
    from weft.training.recipes import find, recipe
    from weft.training.recipes.evidence import evidence_of

    known = {name: found for name in find() if (found := evidence_of(name)) is not None}
    rows = [
        {
            "recipe": name,
            "model": recipe(name).model,
            "parameters": found.runs[0].parameters,
            "metric": found.metric,
            "split": found.split,
            "figure": found.figure(),
            "scores": found.scores,
            "epochs": found.runs[0].epochs,
            "core_time": found.core_time(),
            "processor": found.runs[0].processor,
            "note": found.note,
            "changes": [asdict(change) for change in found.changes],
            "curves": {run.seed: over_epochs(run) for run in found.runs},
        }
        for name, found in known.items()
    ]
    notes = [
        "Judged once on the split named, which no choice was made on; weft recipes check NAME repeats a recipe. Times "
        "are those of the training loop and its evaluations, in processor time of one core."
    ]
    command = "weft train SOURCE --recipe NAME --seed N"
    record = {"study": "recipes", "kind": "recipes", "question": "What the recipes reach", "rows": rows, "notes": notes}
    return {**record, "command": command, "verdicts": []} if rows else {}


def over_epochs(run: SeedRun) -> tuple[list[float], list[float]]:
    """A curve with epochs in place of steps."""
    steps = run.steps / run.epochs
    return [step / steps for step, _ in run.curve], [value for _, value in run.curve]


RECORDED = {
    "e1": counts_record,
    "e2": speed_record,
    "e3": transfer_record,
    "e4": text_record,
    "e5": text_record,
    "e6": text_record,
    "e7": text_record,
    "e8": transfer_record,
    "e9": comparison_record,
    "e10": comparison_record,
    "e11": claims_record,
}
