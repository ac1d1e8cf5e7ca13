"""Cross-validation: the folds of a repetition, each a run that was tested on other rows, as one result on all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from weft.studies.results.answers import confusion, figures, judge
from weft.studies.results.load import Result, judged_by, scores_of, validation_metric
from weft.training.learnt import NOTHING, remark
from weft.training.storage.record import Predictions

SUMMED = ("wall_seconds", "cpu_seconds", "testing_seconds", "cost")


def of_record(record: dict[str, Any] | None) -> int | None:
    """Into how many folds the rows of a run were cut."""
    found: int | None = ((record or {}).get("config", {}).get("reading") or {}).get("folds")
    return found


def runs_of(record: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The records of the runs that a result is made of: its own, or those of the folds."""
    if record is None:
        return []
    found: list[dict[str, Any]] = record.get("members") or [record]
    return found


def joined(results: Sequence[Result], classes: Sequence[str] = ()) -> list[Result]:
    """The results with the folds of each repetition put together; those of other runs, or put together before, as they
    are. `classes` are their names."""
    groups: dict[tuple[str, int, float], list[Result]] = {}
    for result in results:
        groups.setdefault((result.candidate, result.seed, result.share), []).append(result)
    found: list[Result] = []
    for members in groups.values():
        apart = [member.record for member in members if "members" not in (member.record or {})]
        folds = next((count for record in apart if (count := of_record(record))), None)
        found += members if folds is None else [of_folds(members, folds, classes)]
    return found


def of_folds(members: list[Result], folds: int, classes: Sequence[str] = ()) -> Result:
    """One repetition: all rows, each answered by the network that had not seen it."""
    wanting = sorted((member for member in members if not member.finished), key=lambda member: member.waiting)
    if wanting or len(members) < folds:
        first = (wanting or members)[0]
        why = first.reason or f"{folds - len(members)} of {folds} folds are missing"
        return replace(first, record=None, predictions=None, reason=why)
    parts = [member.predictions or {} for member in members]
    order = np.argsort(np.concatenate([part["row"] for part in parts]), kind="stable")
    known = [name for name in parts[0] if all(name in part for part in parts)]  # older runs know less of their rows
    whole: Predictions = {name: np.concatenate([part[name] for part in parts])[order] for name in known}
    lengths = [len(part["row"]) for part in parts]
    whole["fold"] = np.repeat(np.arange(len(parts)), lengths)[order]
    first = replace(members[0], predictions=whole)
    return replace(first, record=as_one([member.record or {} for member in members], first, classes))


def as_one(records: list[dict[str, Any]], first: Result, classes: Sequence[str] = ()) -> dict[str, Any]:
    """The record of a repetition, the records of its `members` in it.

    What was spent is added up. Figures are those of all rows where answers tell them, else means over the folds; and so
    is the judgement whether it learnt, as the validation rows of one fold are few.
    """
    assert first.predictions is not None
    metrics: dict[str, Any] = dict(records[0]["metrics"])
    for name, value in records[0]["metrics"].items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            metrics[name] = float(np.mean([record["metrics"][name] for record in records if name in record["metrics"]]))
    regression = "r2" in metrics
    metrics |= {name: value for name, value in figures(first.predictions, regression).items() if name in metrics}
    if counts := metrics.get("confusion"):
        metrics["confusion"] = confusion(first.predictions, len(counts)).tolist()
    for name in ("accuracy_interval", "mae_interval", "never_answered"):  # of one fold
        metrics.pop(name, None)
    metrics[judged_by(records[0])] = float(scores_of([first]).mean())
    learnt = judge(first.predictions, regression, classes).as_dict()
    best = [validation_metric(replace(first, record=record)) for record in records]
    spent = {name: sum(record.get(name, 0.0) for record in records) for name in SUMMED}
    own = {"metrics": metrics, "validation": float(np.mean(best)), "learnt": learnt, "members": records}
    return {**records[0], **own, "beats_constant_guess": True, **spent}


def stuck(record: dict[str, Any]) -> str | None:
    """Which folds of a repetition learnt nothing, as their own runs say; None where all did."""
    runs = runs_of(record)
    told = [(number, why) for number, run in enumerate(runs) if (why := remark(run)) and why.startswith(NOTHING)]
    if len(runs) < 2 or not told:
        return None
    number, why = told[0]
    return f"{len(told)} of {len(runs)} folds learnt nothing, the first being {number}: {why}"
