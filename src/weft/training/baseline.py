"""Classical baselines: HOG or TF-IDF features, or the vectors themselves, with logistic or ridge regression.

A network that does not beat these has not earned its place. They write the same record as a run, so that they are
one more candidate of a comparison. The regularisation is chosen on the validation split, from five values, as a rate
would be. Beside a single run stands a quick one, from fewer rows and values, made once and kept in the cache.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from weft import machine
from weft.data.batch.stores import made_once
from weft.data.open.source import ROLES, Source
from weft.data.open.splits import MemorySplit, Split, spread
from weft.data.transform.transforms import ImageTransform, Transform, VectorTransform
from weft.training.config import FITTED_ROWS, RunConfig, to_dict, trained_start
from weft.training.features.linear import one_thread
from weft.training.metrics import HEADLINE, measure, score
from weft.training.storage import run_folder
from weft.training.storage.record import COUNTED, commit, predictions, tested_rows, write_predictions

STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)  # of the weights: scikit-learn's C, the inverse of ridge's alpha
QUICK_STRENGTHS, QUICK_ROWS = (0.1, 1.0, 10.0), 10_000  # of the one beside a single run, which takes seconds
QUICK_SIDE = 96  # px of its images
QUICK_WORK = 5e10  # rows · features · classes · steps of its fits, at most: about ten seconds of a busy core
STEPS, ENOUGH, FEWEST = 500, 100, 30  # of logistic regression: at most, what it mostly takes, and what says something
REMEMBERED = 24  # vectors of all weights that L-BFGS holds: ten pairs, the weights, the gradient and two to move
SPEED_ROWS, SLOW = 256, 1.0  # that the speed in use is measured by, and seconds beside which warming up is nothing
CHUNK = 256  # images whose gradients are computed together
PROBED = 200  # training rows that tell how long all of them will take
TRAINED_STRENGTHS = (1e-3, 1e-2, 1e-1)  # on the standardised features of a trained network
UNKNOWN = -50.0  # log-probability of a class that a model does not know
SPACED = 0.02  # of the letters of a text are spaces, at least, where words can be told apart
NAMES = {"image": "HOG", "text": "TF-IDF", "pair": "TF-IDF", "vector": ""}

Features = Any  # (rows, features): a NumPy array, or a sparse matrix for text


def run_baseline(config: RunConfig, path: Path, source: Source, transform: Transform | None) -> dict[str, Any]:
    """Fit on `train`, choose on `validation`, judge on `test`, and leave a run folder behind."""
    started, cpu = time.perf_counter(), time.process_time()
    folder = run_folder.RunFolder(path)
    path.mkdir(parents=True, exist_ok=True)
    folder.write_asked(config)
    rows = {role: examples(source.splits[role], FITTED_ROWS if role == "train" else None) for role in ROLES}
    inputs, targets = {role: x for role, (x, _) in rows.items()}, {role: y for role, (_, y) in rows.items()}
    size = (0, 0)
    if start := trained_start(config.model):
        from weft.training.features.baseline import trained_features

        features, vocabulary, size = trained_features(config, start, source)
        targets = {role: source.splits[role].targets for role in ROLES}
        strengths: tuple[float, ...] = TRAINED_STRENGTHS
    else:
        assert transform is not None
        features, vocabulary = featurise(inputs, source.modality, transform)
        strengths = STRENGTHS
    model, selected = best_model(features, targets, source.task, config.objective.metric, strengths)
    seconds = time.perf_counter() - started
    outputs = answers(model, features["test"], source.task, len(source.classes))
    record = baseline_record(config, source, model, features, outputs, targets["test"], seconds, cpu)
    record["curve"] = [
        {"kind": "evaluation", "step": 1, "epoch": 1.0, "validation_metric": selected, "seconds": seconds}
    ]
    record["parameters"] += size[0]
    record["multiply_adds"] += size[1]
    few = inputs["test"][: min(len(inputs["test"]), SPEED_ROWS)]
    if isinstance(transform, ImageTransform) and not start:  # decoded beforehand, as those of networks are
        few, vocabulary = np.stack([transform.pixels(raw).numpy() for raw in few]), hog
    with one_thread():
        record["inference"] = baseline_speed(model, vocabulary, few, source.task)
    found = predictions(source.task, *outputs_and_targets(outputs, targets["test"]))
    write_predictions(path, found | tested_rows(source))
    folder.write_record(record)
    return record


def beside(
    source: Source, transform: Transform, metric: str | None, say: Callable[[str], None], judged: str = "test"
) -> dict[str, Any] | None:
    """The quick baseline of a source: its name, score on the split `judged`, and how many rows it learnt from.

    None for sources that are streamed, where a classical model finds nothing to hold on to, and where there is no
    memory for one. No other split is looked at but those to learn and to choose from.
    """
    roles = tuple(dict.fromkeys(("train", "validation", judged)))
    splits = [split for role in roles if isinstance(split := source.splits[role], MemorySplit)]
    if len(splits) < len(roles) or source.task == "none":
        return None
    linear = "ridge regression" if source.task == "regression" else "logistic regression"
    name = f"{NAMES[source.modality]} and {linear}" if NAMES[source.modality] else linear
    if isinstance(transform, ImageTransform):  # its cells are eighths of an image, however large
        transform = replace(transform, size=min(transform.size, QUICK_SIDE))

    def build() -> dict[str, Any]:
        work = quick_work(source, transform, roles)
        say(f"{name}, for comparison: about {max(1, round(work.seconds))} s; it is made once")
        found = quick_score(source, transform, metric, judged, work)
        return {"score": torch.tensor([found], dtype=torch.float64), "rows": torch.tensor([work.rows])}

    recipe = (*deciding(source, roles), *seen_through(transform), metric or "", judged)
    try:
        found = made_once(source, "beside", f"{name} on {source.name}", build, *recipe)
    except ValueError:  # of scikit-learn: no words at all, or one class among the rows
        return None
    except MemoryError:
        say(f"{name}, for comparison, is left out: there is no memory for it beside the run")
        return None
    return {"name": name, "score": float(found["score"]), "rows": int(found["rows"])}


def deciding(source: Source, roles: Sequence[str]) -> tuple[bytes | str, ...]:
    """What of a source decides a model of some of its splits, beside its files: rows, inputs, targets and classes."""
    parts: list[bytes | str] = [
        json.dumps([source.modality, source.task, source.target, source.columns, source.classes])
    ]
    for role in roles:
        split = source.splits[role]
        assert isinstance(split, MemorySplit)
        parts += [split.table.name, split.rows.tobytes(), np.ascontiguousarray(split.targets).tobytes()]
    return tuple(parts)


def seen_through(transform: Transform) -> tuple[str, ...]:
    """What of a transform decides the features of classical models; those of texts do not depend on it."""
    if isinstance(transform, ImageTransform):
        return (f"{transform.size} {transform.channels} {transform.crop} {transform.max_pixels}",)
    return (repr((transform.mean, transform.std)),) if isinstance(transform, VectorTransform) else ()


@dataclass(frozen=True)
class Work:
    """How much the quick baseline does: rows, strengths and steps of the fit of each; and about how long that takes."""

    rows: int
    strengths: tuple[float, ...]
    steps: int
    seconds: float


def quick_work(source: Source, transform: Transform, roles: Sequence[str]) -> Work:
    """The work of the quick baseline: less of it where classes and features are many, timed on a few rows."""
    rows, others = (sum(min(source.count(role), QUICK_ROWS) for role in some) for some in (roles[:1], roles[1:]))
    raws, _ = examples(source.splits["train"], min(rows, PROBED))
    began = time.perf_counter()
    features = featurise({"train": raws}, source.modality, transform)[0]["train"]
    each = (time.perf_counter() - began) / len(raws)
    if source.task == "regression":
        return Work(rows, QUICK_STRENGTHS, STEPS, each * (rows + others))
    outputs = len(source.classes) if source.task == "classes" else 1
    step = step_seconds(features, outputs) / len(raws)
    width = features.nnz / len(raws) if hasattr(features, "nnz") else features.shape[1]
    rows, strengths, steps = bounded(rows, width * outputs)
    fits = step * rows * len(strengths) * min(steps, ENOUGH)
    return Work(rows, strengths, steps, each * (rows + others) + fits)


def bounded(rows: int, weights: float) -> tuple[int, tuple[float, ...], int]:
    """Rows, strengths and steps of logistic regression with so many weights a row that take no more than seconds."""
    steps = QUICK_WORK / (rows * weights)
    if steps >= ENOUGH * len(QUICK_STRENGTHS):
        return rows, QUICK_STRENGTHS, min(STEPS, int(steps / len(QUICK_STRENGTHS)))
    if steps < FEWEST:
        rows = max(1, round(rows * steps / FEWEST))
    return rows, QUICK_STRENGTHS[1:2], max(FEWEST, min(ENOUGH, int(steps)))


def step_seconds(features: Features, outputs: int) -> float:
    """About what a step of logistic regression takes: outputs of all rows, their probabilities, and a gradient."""
    weights = np.zeros((features.shape[1], outputs))  # of double precision, as scikit-learn has them

    def step() -> float:
        began = time.perf_counter()
        features.T @ np.exp(features @ weights)
        return time.perf_counter() - began

    return min(step(), step())


def quick_score(source: Source, transform: Transform, metric: str | None, judged: str, work: Work) -> float:
    """The score of the quick baseline on the split `judged`."""
    most = {"train": work.rows, "validation": QUICK_ROWS, judged: QUICK_ROWS}
    rows = {role: examples(source.splits[role], count) for role, count in most.items()}
    inputs, targets = {role: x for role, (x, _) in rows.items()}, {role: y for role, (_, y) in rows.items()}
    features, _ = featurise(inputs, source.modality, transform)
    require_memory(features["train"].shape[1] * max(1, len(source.classes)))
    task: Any = source.task
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a fit is not quite done after so many steps
        model, _ = best_model(features, targets, task, metric, work.strengths, work.steps)
    found = outputs_and_targets(answers(model, features[judged], task, len(source.classes)), targets[judged])
    return score(metric or HEADLINE[task], task, *found)


def require_memory(weights: int) -> None:
    """Refuse a fit whose weights, and the pairs of them that L-BFGS remembers, are more than the memory has."""
    if weights * REMEMBERED * 8 > machine.memory_available():
        raise MemoryError


def seconds_per_row(source: Source, transform: Transform, rows: int = PROBED) -> float:
    """How long the baseline takes for a training row, from a few of them and one strength; 0 where they do not tell."""
    began = time.perf_counter()
    found = {role: examples(source.splits[role], rows) for role in ROLES}
    inputs, targets = {role: x for role, (x, _) in found.items()}, {role: y for role, (_, y) in found.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a fit is not quite done after so many steps
            features, _ = featurise(inputs, source.modality, transform)
            featurised = time.perf_counter()
            best_model(features, targets, source.task, strengths=STRENGTHS[2:3])
    except ValueError:  # of scikit-learn: no words at all, or one class among the rows
        return 0.0
    fitting = len(STRENGTHS) * (time.perf_counter() - featurised)
    return (featurised - began + fitting) / len(targets["train"])


def examples(split: Split, most: int | None) -> tuple[Any, NDArray[Any]]:
    """Raw inputs and targets of a split, evenly thinned to `most`."""
    return split.read(spread(len(split), len(split) if most is None else most))


def featurise(inputs: dict[str, Any], modality: str, transform: Transform) -> tuple[dict[str, Features], Any]:
    """Features of each role, and the function from raw inputs to features; only `train` is learnt from."""
    function: Any
    if isinstance(transform, ImageTransform):
        function = lambda raws: hog_of(raws, transform)  # noqa: E731
    elif isinstance(transform, VectorTransform):
        function = lambda raws: transform.normalize(np.asarray(raws)).numpy()  # noqa: E731
    else:
        vectorizer = fitted_words([as_text(raw) for raw in inputs["train"]])
        function = lambda raws: vectorizer.transform([as_text(raw) for raw in raws])  # noqa: E731
    return {role: function(raws) for role, raws in inputs.items()}, function


def fitted_words(texts: list[str]) -> Any:
    """TF-IDF of words and pairs of them; of up to three letters where a script has no spaces, or words are letters."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    letters = sum(map(len, texts))
    spaced = sum(text.count(" ") for text in texts) >= SPACED * letters
    if spaced:
        with suppress(ValueError):  # no word of two letters occurs twice
            return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2).fit(texts)
    return TfidfVectorizer(analyzer="char", ngram_range=(1, 3), sublinear_tf=True, min_df=1).fit(texts)


def as_text(raw: Any) -> str:
    """A text, or the two of a pair one after the other."""
    return raw if isinstance(raw, str) else " ".join(raw)


def hog_of(raws: Sequence[Any], transform: ImageTransform) -> NDArray[np.float32]:
    """HOG of raw images, decoded some at a time."""
    parts = (raws[first : first + CHUNK] for first in range(0, len(raws), CHUNK))
    return np.concatenate([hog(np.stack([transform.pixels(raw).numpy() for raw in part])) for part in parts])


def hog(images: NDArray[np.uint8], bins: int = 9) -> NDArray[np.float32]:
    """Histograms of oriented gradients (Dalal & Triggs 2005): (n, channels, side, side) to (n, cells · bins).

    Each pixel votes with its gradient's length for the two nearest of nine unsigned orientations, in cells of an
    eighth of the side; a cell is divided by the energy of its 3 × 3 neighbourhood. Some images at a time: what is
    computed on the way takes some fifty bytes a pixel.
    """
    if len(images) > CHUNK:
        return np.concatenate([hog(images[first : first + CHUNK], bins) for first in range(0, len(images), CHUNK)])
    if min(images.shape[2:]) < 2:  # a single pixel has no gradient; repeated, it has one of nothing
        images = images.repeat(2, axis=2).repeat(2, axis=3)
    grey = images.astype(np.float32).mean(1)
    down, across = np.gradient(grey, axis=(1, 2))
    length = np.hypot(down, across)
    angle = np.arctan2(down, across) % np.pi / np.pi * bins
    lower = np.floor(angle).astype(np.int8)
    share = angle.astype(np.float64) - lower
    cell = max(2, grey.shape[1] // 8)
    cells = grey.shape[1] // cell
    found = np.empty((len(images), cells, cells, bins), np.float32)
    for bin_ in range(bins):
        votes = length * ((lower % bins == bin_) * (1 - share) + ((lower + 1) % bins == bin_) * share)
        votes = votes[:, : cells * cell, : cells * cell]
        found[..., bin_] = votes.reshape(-1, cells, cell, cells, cell).sum((2, 4))
    energy = np.pad((found**2).sum(-1), ((0, 0), (1, 1), (1, 1)))
    around = sum(energy[:, i : i + cells, j : j + cells] for i in range(3) for j in range(3))
    normed = found / np.sqrt(around + 1e-3)[..., None]
    return normed.reshape(len(images), -1).astype(np.float32)


def best_model(
    features: dict[str, Features],
    targets: dict[str, NDArray[Any]],
    task: Any,
    metric: str | None = None,
    strengths: Sequence[float] = STRENGTHS,
    steps: int = STEPS,
) -> tuple[Any, float]:
    """The model of the strength that the validation split prefers, and its score there."""

    def judged(model: Any) -> float:
        if metric is None:
            return float(model.score(features["validation"], targets["validation"]))
        return score(
            metric, task, *outputs_and_targets(answers(model, features["validation"], task), targets["validation"])
        )

    fitted = [create(task, strength, steps).fit(features["train"], targets["train"]) for strength in strengths]
    scores = [judged(model) for model in fitted]
    best = int(np.argmax(scores))
    return fitted[best], scores[best]


def create(task: str, strength: float, steps: int = STEPS) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge

    return Ridge(alpha=1 / strength) if task == "regression" else LogisticRegression(C=strength, max_iter=steps)


def answers(model: Any, features: Features, task: str, outputs: int = 0) -> NDArray[np.float64]:
    """Logits (n, K), or (n, 1) for binary and regression, as a network with so many `outputs` would answer."""
    if task == "regression":
        return np.asarray(model.predict(features)).reshape(-1, 1)
    if task == "binary":
        return np.asarray(model.decision_function(features)).reshape(-1, 1)
    found, known = np.asarray(model.predict_log_proba(features)), np.asarray(model.classes_).astype(np.int64)
    if outputs <= len(known):
        return found
    every = np.full((len(found), outputs), UNKNOWN)  # a class that no training row has is never the answer
    every[:, known] = found
    return every


def outputs_and_targets(outputs: NDArray[Any], targets: NDArray[Any]) -> tuple[Any, Any]:
    return torch.from_numpy(np.ascontiguousarray(outputs)), torch.from_numpy(np.ascontiguousarray(targets))


def baseline_record(
    config: RunConfig,
    source: Source,
    model: Any,
    features: dict[str, Features],
    outputs: NDArray[Any],
    targets: NDArray[Any],
    seconds: float,
    cpu: float,
) -> dict[str, Any]:
    """The record of a baseline: the fields of a run's that have a meaning for it."""
    weights = int(np.size(model.coef_))
    task: Any = source.task
    metrics = measure(task, *outputs_and_targets(outputs, targets), len(source.classes))
    if len(source.classes) > COUNTED:
        metrics.pop("confusion", None)
    metric = config.objective.metric or HEADLINE[task]
    if metric not in metrics:
        metrics[metric] = score(metric, task, *outputs_and_targets(outputs, targets))
    return {
        "status": "finished",
        "metric": metric,
        "metrics": metrics,
        "source": {"name": source.name, "fingerprint": source.fingerprint, "notes": source.notes},
        "parameters": weights + int(np.size(model.intercept_)),
        "multiply_adds": weights,
        "config": to_dict(config),
        "environment": {"commit": commit(), "processor": machine.cpu_model(), "threads": 1, "device": "cpu"},
        "steps": len(STRENGTHS),
        "throughput": len(STRENGTHS) * features["train"].shape[0] / seconds,
        "wall_seconds": seconds,
        "cpu_seconds": time.process_time() - cpu,
        "peak_memory": machine.memory_peak(),
        "cost": seconds / 3600 * config.execution.price_per_hour,
        "rollbacks": [],
    }


def baseline_speed(model: Any, featurise_raw: Any, raws: Any, task: str) -> dict[str, float]:
    """Examples a second over a batch, and seconds for one, features included; the thread that calls is to be alone."""

    def taken(rows: Any) -> float:
        started = time.perf_counter()
        answers(model, featurise_raw(rows), task)
        return time.perf_counter() - started

    first = taken(raws)
    several = [first] if first > SLOW else [taken(raws) for _ in range(5)]
    alone = [taken(raws[number : number + 1]) for number in range(min(20, len(raws)))]
    return {"throughput": len(raws) / float(np.median(several)), "latency": float(np.median(alone)), "threads": 1}
