"""Records and predictions back from the disk, whole or not: what cannot be used is left out with a sentence."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.disk import Damaged, find_below
from weft.errors import WeftError
from weft.networks.registry import REGISTRY, configured
from weft.studies.compare.candidates import Candidate, group_of
from weft.studies.engine.study import read_study, why_missing
from weft.studies.engine.worker_time import trained_share
from weft.studies.statistics.macro_f1 import f1_scores
from weft.studies.statistics.rows import Rows, Scores, balance
from weft.terminal import how_many
from weft.training.config import is_fitted
from weft.training.finetuning.config import LINEAR
from weft.training.storage.record import Predictions, best_validation, read_predictions
from weft.training.storage.record import read_record as read_checked

BY_ANSWER = ("accuracy", "balanced_accuracy", "macro_f1")  # metrics of classes that verdicts may rest on


@dataclass(frozen=True)
class Result:
    """One run: its record and predictions, or why there are none."""

    candidate: str
    seed: int
    share: float
    path: Path
    record: dict[str, Any] | None = None
    predictions: Predictions | None = None
    reason: str = ""
    log: str = ""
    waiting: bool = False
    """whether it has not been tried yet"""

    @property
    def finished(self) -> bool:
        return self.record is not None and self.record["status"] == "finished" and self.predictions is not None


@dataclass(frozen=True)
class Collection:
    """All that a folder of results holds."""

    study: dict[str, Any]
    candidates: list[Candidate]
    results: list[Result]
    problems: list[str]
    busy: float | None = None
    """share of the workers' time that went into training, where that is known"""


def collect(folder: Path) -> Collection:
    """The results of a study's folder, or of any folder with run folders below it."""
    if not folder.is_dir():
        raise WeftError(f"there is no folder {folder}; give the one that a comparison, or your runs, are in")
    study = read_study(folder)
    return of_study(folder, study) if study is not None else of_runs(folder)


def of_study(folder: Path, study: dict[str, Any]) -> Collection:
    problems: list[str] = []
    results = []
    weights = {candidate["name"]: candidate["weights"] for candidate in study["candidates"]}
    for run in study["runs"]:
        path = folder / "runs" / run["name"]
        result = Result(run["candidate"], run["seed"], run["share"], path)
        found = same_source(completed(result, folder, problems), study["facts"], problems)
        results.append(same_start(found, weights.get(run["candidate"], ""), problems))
    candidates = [Candidate(**candidate) for candidate in study["candidates"]]
    return Collection(study, candidates, results, problems, trained_share(folder))


def completed(result: Result, folder: Path, problems: list[str]) -> Result:
    """A result with its record and predictions, or with the reason why it has none."""
    if not (result.path / "record.json").is_file():
        why = why_missing(folder, result.path.name)
        return replace(result, reason=why.reason, log=why.log, waiting=why.waiting)
    try:
        record = read_record(result.path / "record.json")
        if record["status"] != "finished":
            log = f"logs/{result.path.name}.txt"
            return replace(result, record=record, reason=str(record.get("reason", "failed")), log=log)
        if judged_by(record) not in ("r2", *BY_ANSWER):
            raise WeftError(f"{result.path} is judged by its {record['metric']}, not by examples, and was left out")
        return replace(result, record=record, predictions=read_predictions(result.path))
    except WeftError as error:
        problems.append(str(error))
        return replace(result, reason="its record cannot be read")


def same_source(result: Result, facts: dict[str, Any], problems: list[str]) -> Result:
    """The result, or why it does not count: its source was changed while the study went on.

    Runs of other kinds keep the fingerprint of what they made of the source.
    """
    record = result.record or {}
    found = record.get("source", {}).get("fingerprint", facts["fingerprint"])
    if found == facts["fingerprint"] or record.get("kind", "train") != "train":
        return result
    problems.append(f"{result.path} read other data than the rest, as {facts['name']} was changed meanwhile: left out")
    return replace(result, record=None, predictions=None, reason=f"{facts['name']} was changed meanwhile")


def same_start(result: Result, weights: str, problems: list[str]) -> Result:
    """The result, or why it does not count: the trained network that it starts from was changed meanwhile."""
    start = (result.record or {}).get("source", {}).get("start", {})
    if not weights or not start or weights.startswith(start["digest"]):
        return result
    problems.append(f"{result.path} started from other weights than the rest, as {start['folder']} was changed")
    return replace(result, record=None, predictions=None, reason=f"{start['folder']} was changed meanwhile")


def read_record(path: Path) -> dict[str, Any]:
    """A record, checked for what tables need."""
    try:
        return read_checked(path)
    except Damaged as error:
        raise Damaged(f"{error}; it was left out") from error


def of_runs(folder: Path) -> Collection:
    """Every run below a folder on the source that most of them share; candidates differ in their configuration."""
    problems: list[str] = []
    found: list[tuple[Path, dict[str, Any]]] = []
    for path in find_below(folder, "record.json"):
        try:
            found.append((path.parent, read_record(path)))
        except WeftError as error:
            problems.append(str(error))
    if not found:
        why = f" ({problems[0]})" if problems else ""
        raise WeftError(f"{folder} holds no finished run{why}; `weft compare` or `weft train` makes some")
    source, count = Counter(record["source"]["fingerprint"] for _, record in found).most_common(1)[0]
    if count < len(found):
        problems.append(f"left out, as on another source: {how_many(len(found) - count, 'run')}")
    same = [(path, record) for path, record in found if record["source"]["fingerprint"] == source]
    candidates, names = candidates_of([record for _, record in same])
    results = [
        completed(Result(name, record["config"]["seed"], 1.0, path), folder, problems)
        for (path, record), name in zip(same, names, strict=True)
    ]
    return Collection(as_study(folder, same[0][1]), candidates, results, problems)


def as_study(folder: Path, record: dict[str, Any]) -> dict[str, Any]:
    """What study.json would say of runs that nobody planned together."""
    facts = {"name": record["source"]["name"], "notes": record["source"]["notes"], "classes": []}
    return {"title": f"runs in {folder}", "match": "none", "budget": "", "command": "", "notes": [], "facts": facts}


def candidates_of(records: list[dict[str, Any]]) -> tuple[list[Candidate], list[str]]:
    """The candidates of records, and which one each belongs to: configurations that differ by the seed are one."""
    keys = [
        json.dumps({k: v for k, v in r["config"].items() if k not in ("seed", "execution")}, sort_keys=True)
        for r in records
    ]
    candidates: dict[str, Candidate] = {}
    for key, record in zip(keys, records, strict=True):
        if key in candidates:
            continue
        model, network = model_of(record), record["config"]["network"]
        same = sum(candidate.model == model for candidate in candidates.values())
        candidates[key] = describe_candidate(f"{model}-{same + 1}" if same else model, model, network)
    return list(candidates.values()), [candidates[key].name for key in keys]


def model_of(record: dict[str, Any]) -> str:
    """How the network of a record is called: by its name, else by what was put on an encoder or fine-tuned."""
    config = record["config"]
    if config["model"]:
        return str(config["model"])
    thawing = config.get("thawing")
    frozen = isinstance(thawing, dict) and thawing.get("frozen")
    return LINEAR if frozen else Path(str(config.get("start") or "network")).name


def describe_candidate(name: str, model: str, network: dict[str, Any]) -> Candidate:
    """A candidate from what its record says of it."""
    if is_fitted(model):
        return Candidate(name, model, "classical")
    if model not in REGISTRY:
        return Candidate(name, model, "hybrid", network)
    try:
        config = configured(model, **network)
    except WeftError:  # a network on an encoder has what its named size has not, or lacks its blocks
        return Candidate(name, model, "hybrid", network)
    return Candidate(name, model, group_of(config), network, hasattr(config, "mixer"))


def validation_metric(result: Result) -> float:
    """The best metric on the validation split, which chose the weights that were reported."""
    assert result.record is not None
    if "validation" in result.record:  # of several folds
        return float(result.record["validation"])
    return best_validation(result.record)


def judged_by(record: dict[str, Any]) -> str:
    """The metric that verdicts rest on: the one that was asked for if there are intervals for it, else accuracy or R²,
    though another chose the best step."""
    if (own := own_metric(record)) is None:
        return str(record["metric"])
    return own if own in BY_ANSWER else "accuracy" if "accuracy" in record["metrics"] else "r2"


def own_metric(record: dict[str, Any]) -> str | None:
    """The metric that was asked for, if one was."""
    found: str | None = record["config"].get("objective", {}).get("metric")
    return found


def deciding(results: list[Result]) -> str:
    """The metric that verdicts on all of these rest on; accuracy where runs were asked for different ones."""
    found = list(dict.fromkeys(judged_by(result.record or {}) for result in results if result.finished))
    return found[0] if len(found) == 1 else "accuracy"


def scores_of(results: list[Result], metric: str | None = None) -> Scores:
    """(seeds, examples): right or wrong, by the weight of the class in balanced accuracy, or what an example brings to
    macro-F1 or R²."""
    metric = metric or deciding(results)
    return np.stack([score(result.predictions or {}, metric) for result in results])


def rows_of(results: list[Result], metric: str | None = None, folds: int | None = None, fixed: bool = False) -> Rows:
    """What is known of the test rows of finished results, which are the same for all of them; `fixed` says that no seed
    would change the answers."""
    first = next((result for result in results if result.finished), None)
    if first is None or first.record is None or first.predictions is None:
        return Rows(folds=folds)
    found, metric = first.predictions, metric or deciding(results)
    return Rows(
        targets=found["target"].astype(np.float64) if metric == "r2" else None,
        classes=found["target"].astype(np.int64) if metric == "balanced_accuracy" else None,
        f1_classes=found["target"].astype(np.int64) if metric == "macro_f1" else None,
        groups=found.get("group"),
        folds=folds,
        cut=found.get("fold") if folds and len(results) == 1 and not fixed else None,
    )


def score(predictions: Predictions, metric: str) -> NDArray[np.float64]:
    """Per-example scores whose mean is accuracy, balanced accuracy, macro-F1 or R²."""
    predicted, target = predictions["predicted"].astype(np.float64), predictions["target"].astype(np.float64)
    if metric == "macro_f1":
        return f1_scores(target, predicted)
    if metric in BY_ANSWER:
        right = (predicted == target).astype(np.float64)
        return right if metric == "accuracy" else right * balance(target)
    spread = float(target.var())
    return 1 - (predicted - target) ** 2 / spread if spread else np.zeros_like(target)
