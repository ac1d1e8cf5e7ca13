"""Cross-validation: the folds of a repetition, each a run that was tested on other rows, as one result on all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from weft.studies.results.load import Result, judged_by, scores_of, validation_metric
from weft.training.storage.record import Predictions

SUMMED = ("wall_seconds", "cpu_seconds", "cost")


def of_record(record: dict[str, Any] | None) -> int | None:
    """Into how many folds the rows of a run were cut."""
    found: int | None = ((record or {}).get("config", {}).get("reading") or {}).get("folds")
    return found


def joined(results: Sequence[Result]) -> list[Result]:
    """The results with the folds of each repetition put together; those of other runs as they are."""
    groups: dict[tuple[str, int, float], list[Result]] = {}
    for result in results:
        groups.setdefault((result.candidate, result.seed, result.share), []).append(result)
    found: list[Result] = []
    for members in groups.values():
        folds = next((count for member in members if (count := of_record(member.record))), None)
        found += members if folds is None else [of_folds(members, folds)]
    return found


def of_folds(members: list[Result], folds: int) -> Result:
    """One repetition: all rows, each answered by the network that had not seen it."""
    wanting = [member for member in members if not member.finished]
    if wanting or len(members) < folds:
        first = (wanting or members)[0]
        why = first.reason or f"{folds - len(members)} of {folds} folds are missing"
        return replace(first, record=None, predictions=None, reason=why)
    parts = [member.predictions for member in members]
    rows = np.concatenate([part["row"] for part in parts])  # type: ignore[index]
    order = np.argsort(rows, kind="stable")
    whole: Predictions = {
        name: np.concatenate([part[name] for part in parts])[order]  # type: ignore[index]
        for name in parts[0]  # type: ignore[union-attr]
    }
    first = replace(members[0], predictions=whole)
    return replace(first, record=as_one([member.record or {} for member in members], first))


def as_one(records: list[dict[str, Any]], first: Result) -> dict[str, Any]:
    """The record of a repetition: what was spent is added up, figures are of all rows, or means over the folds."""
    metrics: dict[str, Any] = dict(records[0]["metrics"])
    for name, value in records[0]["metrics"].items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            metrics[name] = float(np.mean([record["metrics"][name] for record in records]))
    if "confusion" in metrics:
        metrics["confusion"] = np.sum([record["metrics"]["confusion"] for record in records], axis=0).tolist()
    metrics.pop("accuracy_interval", None)
    metrics[judged_by(records[0])] = float(scores_of([first]).mean())
    best = [validation_metric(replace(first, record=record)) for record in records]
    spent = {name: sum(record.get(name, 0.0) for record in records) for name in SUMMED}
    return {**records[0], "metrics": metrics, "validation": float(np.mean(best)), **spent}
