"""A study's results as one small file that can be kept in a repository: numbers and sentences, no weights, no curves.

`report/results.py` draws pages from such files; it knows nothing else of a study.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weft.disk import write_json
from weft.errors import WeftError

ROW = ("name", "group", "score", "low", "high", "seeds", "steps", "parameters", "macs", "core_seconds")
TABLE = ("title", "question", "scale", "source", "budget", "command", "quantities", "conclusion", "time", "notes")


def keep_record(name: str, scale: str, folder: Path, results: Path) -> Path:
    """Write the record of the study in `folder`; returns its path."""
    record = {"study": name, **RECORDED[name](folder)} if name in RECORDED else None
    if record is None:
        raise WeftError(f"{name} has no results to keep; those of {', '.join(RECORDED)} have")
    results.mkdir(parents=True, exist_ok=True)
    path = results / f"{folder.name}.json"
    write_json(path, {"scale": scale, **record})
    return path


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


def speed_record(folder: Path) -> dict[str, Any]:
    from weft.studies.experiments.speed_tables.speed_drawing import summarise_speeds

    return of_table(summarise_speeds(folder))


def of_table(summary: dict[str, Any]) -> dict[str, Any]:
    """The part of a published table's summary that is kept."""
    rows = [
        {
            "name": row["name"],
            "parameters": row.get("parameters"),
            "seeds": row.get("seeds"),
            "measured": {
                quantity: {end: rounded(value) for end, value in found.items()}
                for quantity, found in row["measured"].items()
            },
            "published": {name: value for name, value in row["published"].items() if value is not None},
        }
        for row in summary["rows"]
    ]
    return {
        "kind": "table",
        "table": summary["table"],
        **{name: summary[name] for name in TABLE if name in summary},
        "rows": rows,
        "verdicts": [ordering["sentence"] for ordering in summary["orderings"]],
        "environment": summary["environment"],
    }


RECORDED = {
    "e2": speed_record,
    "e4": text_record,
    "e5": text_record,
    "e6": text_record,
    "e7": text_record,
    "e9": comparison_record,
    "e10": comparison_record,
    "e11": claims_record,
}
