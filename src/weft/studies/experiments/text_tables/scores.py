"""Scores of every candidate of a table from the records of its runs: (seeds, examples) for each quantity.

A perplexity is exp(Σ losses / Σ masked tokens) over held-out sequences. Its logarithm is a ratio, whose variance over
sequences is that of the residuals losses − ratio · tokens; `log_perplexity` gives scores with that mean and variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.errors import WeftError
from weft.studies.engine.study import why_missing
from weft.studies.experiments.text_tables.design import PERPLEXITY
from weft.studies.results.load import read_record
from weft.studies.statistics.rows import Scores
from weft.training.learnt import remark
from weft.training.storage.record import read_predictions


@dataclass(frozen=True)
class CandidateScores:
    """The finished runs of one candidate of a table, by quantity."""

    records: dict[str, list[dict[str, Any]]]
    scores: dict[str, Scores]
    problems: list[str]


def measure_candidate(folder: Path, runs: list[dict[str, Any]]) -> CandidateScores:
    """What the finished runs of a candidate, as study.json lists them, came to."""
    row = CandidateScores({}, {}, [])
    scores: dict[str, list[NDArray[np.float64]]] = {}
    for run in runs:
        path = folder / "runs" / run["name"]
        if not (path / "record.json").is_file():
            row.problems.append(
                f"{run['candidate']}, {run['part']}, seed {run['seed']}: {why_missing(folder, run['name']).reason}"
            )
            continue
        try:
            record = read_record(path / "record.json")
            if record["status"] != "finished":
                raise WeftError(
                    f"{run['candidate']}, {run['part']}, seed {run['seed']}: {record.get('reason', 'failed')}"
                )
            found = run_scores(path, run["part"])
        except WeftError as error:
            row.problems.append(str(error))
            continue
        if chance := remark(record):
            row.problems.append(f"{run['candidate']}, {run['part']}, seed {run['seed']}: {chance}")
        row.records.setdefault(run["part"], []).append(record)
        scores.setdefault(run["part"], []).append(found)
    row.scores.update({part: np.stack(equally_long(part, found, row.problems)) for part, found in scores.items()})
    return row


def equally_long(part: str, found: list[NDArray[np.float64]], problems: list[str]) -> list[NDArray[np.float64]]:
    """Those that were judged on as many examples as the first."""
    same = [scores for scores in found if len(scores) == len(found[0])]
    if len(same) < len(found):
        problems.append(f"{len(found) - len(same)} runs of {part} were judged on other examples and were left out")
    return same


def run_scores(path: Path, part: str) -> NDArray[np.float64]:
    """Scores of one run: log-perplexity by sequence, or right and wrong by example."""
    if part == PERPLEXITY:
        losses = read_predictions(path, ("loss", "words"))
        return log_perplexity(losses["loss"], losses["words"])
    found = read_predictions(path)
    return (found["predicted"] == found["target"]).astype(np.float64)


def log_perplexity(losses: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.float64]:
    """Scores (sequences,) whose mean is log perplexity, from sums of losses and numbers of masked tokens."""
    losses, counts = losses.astype(np.float64), counts.astype(np.float64)
    ratio = losses.sum() / counts.sum()
    return ratio + (losses - ratio * counts) / counts.mean()
