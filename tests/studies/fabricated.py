"""A small question for a comparison; and studies that nobody trained, with records as the runner would leave them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from weft.studies.compare.candidates import Candidate, Facts
from weft.studies.compare.config import ComparisonConfig
from weft.studies.engine.study import Job, Study
from weft.training.config import ReadingConfig, RunConfig, to_dict
from weft.training.storage.record import write_predictions

CLASSES = [str(number) for number in range(10)]

CANDIDATES = {
    "mlp": 0.95,
    "vit_nano_p4_32": 0.9,
    "resnet20_cifar": 0.96,
    "control_identity_p4_32": 0.7,
    "hog+logistic": 0.85,
}  # and the accuracies about which their runs lie


def facts(name: str = "digits", classes: list[str] = CLASSES) -> Facts:
    shape, notes = {"img_size": (8, 8), "in_chans": 1}, ["20% of the rows were held out"]
    return Facts(name, "image", "classes", len(classes), "f" * 32, 1295, shape, classes, notes)


def asked(**changes) -> ComparisonConfig:
    """Two networks and the baseline on digits, a few steps each."""
    settings = {"models": "mlp,vit_nano_p4_32", "amount": "10k", "seeds": 2, "steps": 12, "controls": False, "jobs": 1}
    return ComparisonConfig(**{**settings, **changes})


def record(config: RunConfig, accuracy: float, points: int = 15, **changes: Any) -> dict[str, Any]:
    """What a run would have written."""
    curve = []
    for step in range(1, points + 1):
        curve.append(
            {"kind": "train", "step": step, "epoch": step / 3, "loss": 2.3 / step, "lr": 1e-3, "seconds": step}
        )
        if step % 5 == 0:
            curve.append(
                {"kind": "evaluation", "step": step, "epoch": step / 3, "validation_metric": accuracy * step / points}
            )
    return {
        "status": "finished",
        "metric": "accuracy",
        "metrics": {"accuracy": accuracy, "confusion": (np.eye(10, dtype=int) * 9 + 1).tolist()},
        "source": {"name": "digits", "fingerprint": "f" * 32, "notes": []},
        "parameters": 50_000,
        "multiply_adds": 900_000,
        "config": to_dict(config),
        "plan": {"lr": 0.003},
        "environment": {"torch": "2.13", "weft": "0.1", "commit": "abc", "processor": "CPU", "cores": 2, "threads": 1},
        "steps": points,
        "throughput": 1000.0,
        "wall_seconds": 3.0,
        "cpu_seconds": 3.0,
        "peak_memory": 2**29,
        "cost": 0.0001,
        "rollbacks": [],
        "curve": curve,
        **changes,
    }


def make_study(
    folder: Path, accuracies: dict[str, float], seeds: int = 3, points: int = 15, examples: int = 400,
    classes: list[str] = CLASSES,
) -> Study:  # fmt: skip
    """A finished study; candidates are named after networks of the registry, `hog+logistic` is the baseline."""
    from weft.studies.results.load import describe_candidate

    candidates: list[Candidate] = [describe_candidate(name, name.split("@")[0], {}) for name in accuracies]
    jobs = [
        Job(candidate.name, RunConfig(source="digits", model=candidate.model, seed=seed), "f" * 32)
        for candidate in candidates
        for seed in range(1 if candidate.fixed else seeds)
    ]
    study = Study(
        folder, "a study", facts(classes=classes), candidates, jobs, "params", "50,000 parameters each", "weft compare"
    )
    study.save()
    rng = np.random.default_rng(0)
    hard = rng.permutation(examples)
    for job in jobs:
        finish(study, job, accuracies[job.candidate], points, examples, hard, rng, len(classes))
    return study


def finish(
    study: Study, job: Job, accuracy: float, points: int = 15, examples: int = 400, hard: Any = None, rng: Any = None,
    classes: int = 10,
) -> None:  # fmt: skip
    """Leave what a run would have left."""
    rng = np.random.default_rng(0) if rng is None else rng
    hard = rng.permutation(examples) if hard is None else hard
    path = study.run_folder(job).path
    path.mkdir(parents=True, exist_ok=True)
    study.run_folder(job).write_asked(job.config)
    target = np.arange(examples, dtype=np.int32) % classes
    wrong = hard[: max(1, round((1 - accuracy) * examples) + int(rng.integers(-1, 2)))]
    predicted = target.copy()
    predicted[wrong] = (target[wrong] + 1) % classes
    confidence = np.full(examples, 0.9, np.float32)
    write_predictions(path, {"predicted": predicted, "confidence": confidence, "target": target})
    found = record(job.config, float((predicted == target).mean()), points)
    confusion = np.zeros((classes, classes), int)
    np.add.at(confusion, (target, predicted), 1)
    found["metrics"]["confusion"] = confusion.tolist()
    (path / "record.json").write_text(json.dumps(found))
    (path / "inference.json").write_text(json.dumps({"throughput": 5000.0, "latency": 0.001, "threads": 1}))


def make_folds(
    folder: Path, accuracies: dict[str, float], folds: int = 5, seeds: int = 1, examples: int = 100
) -> Study:
    """A finished study of two classes whose seeds are repetitions of a cross-validation."""
    from weft.studies.results.load import describe_candidate

    candidates: list[Candidate] = [describe_candidate(name, name, {}) for name in accuracies]
    jobs = [
        Job(
            name,
            RunConfig(source="digits", model=name, seed=seed, reading=ReadingConfig(folds=folds, fold=fold)),
            "f" * 32,
        )
        for name in accuracies
        for seed in range(seeds)
        for fold in range(folds)
    ]
    study = Study(folder, "a study", facts(classes=["no", "yes"]), candidates, jobs, "time", "", "weft compare x.csv")
    study.save()
    rng = np.random.default_rng(0)
    for job in jobs:
        rows = np.arange(job.labelled.reading.fold, examples, folds)
        target = (rows // folds % 2).astype(np.int32)
        predicted = np.where(rng.random(len(rows)) < accuracies[job.candidate], target, 1 - target).astype(np.int32)
        finish_with(study, job, {"predicted": predicted, "target": target, "row": rows})
    return study


def finish_with(study: Study, job: Job, answers: dict[str, Any], **changes: Any) -> None:
    """Leave what a run with these answers to two classes would have left."""
    path = study.run_folder(job).path
    path.mkdir(parents=True, exist_ok=True)
    write_predictions(path, {"confidence": np.full(len(answers["target"]), 0.9, np.float32), **answers})
    counts = np.zeros((2, 2), int)
    np.add.at(counts, (answers["target"], answers["predicted"]), 1)
    found = record(job.labelled, float((answers["predicted"] == answers["target"]).mean()), **changes)
    known = [row[number] / max(row.sum(), 1) for number, row in enumerate(counts) if row.sum()]
    found["metrics"] |= {"confusion": counts.tolist(), "balanced_accuracy": float(np.mean(known))}
    (path / "record.json").write_text(json.dumps(found))
