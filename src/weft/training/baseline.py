"""Classical baselines: HOG or TF-IDF features, or the vectors themselves, with logistic or ridge regression.

A network that does not beat these has not earned its place. They write the same record as a run, so that they are
one more candidate of a comparison. The regularisation is chosen on the validation split, from five values, as a rate
would be. Beside a single run stands a quick one, from fewer rows and values, made once and kept in the cache.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from weft import machine
from weft.data.batch.stores import VERSION
from weft.data.open.source import ROLES, Source
from weft.data.open.splits import MemorySplit, Split, spread
from weft.data.read.cache import Cache, digest
from weft.data.transform.transforms import ImageTransform, Transform, VectorTransform
from weft.training.config import RunConfig, trained_start
from weft.training.metrics import HEADLINE, measure, score
from weft.training.storage import run_folder, yaml_file
from weft.training.storage.record import COUNTED, commit, predictions, tested_rows, write_predictions

STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)  # of the weights: scikit-learn's C, the inverse of ridge's alpha
MOST = 50_000  # training rows; beyond that the baseline takes an evenly spread sample
QUICK_STRENGTHS, QUICK_ROWS = (0.1, 1.0, 10.0), 10_000  # of the one beside a single run, which takes seconds
QUICK_SIDE = 96  # px of its images
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
    rows = {role: examples(source.splits[role], MOST if role == "train" else None) for role in ROLES}
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
    record["inference"] = baseline_speed(model, vocabulary, inputs["test"], source.task)
    found = predictions(source.task, *outputs_and_targets(outputs, targets["test"]))
    write_predictions(path, found | tested_rows(source))
    folder.write_record(record)
    return record


def beside(
    source: Source, transform: Transform, metric: str | None, say: Callable[[str], None]
) -> dict[str, Any] | None:
    """The quick baseline of a source: its name, score on the test split, and how many rows it learnt from.

    None for sources that are streamed, and where a classical model finds nothing to hold on to.
    """
    splits = [split for role in ROLES if isinstance(split := source.splits[role], MemorySplit)]
    if len(splits) < len(ROLES) or source.task == "none":
        return None
    linear = "ridge regression" if source.task == "regression" else "logistic regression"
    name = f"{NAMES[source.modality]} and {linear}" if NAMES[source.modality] else linear
    if isinstance(transform, ImageTransform):  # its cells are eighths of an image, however large
        transform = replace(transform, size=min(transform.size, QUICK_SIDE))
    side = transform.size if isinstance(transform, ImageTransform) else 0
    rows = b"".join(split.rows.tobytes() for split in splits)
    key = digest("beside", VERSION, source.fingerprint, rows, *source.columns, source.task, metric or "", str(side))

    def build() -> dict[str, Any]:
        say(f"{name} first, for comparison; it is made once")
        return {"score": torch.tensor([quick_score(source, transform, metric)], dtype=torch.float64)}

    try:
        score = float(Cache().get(key, f"{name} on {source.name}", build)["score"])
    except ValueError:  # of scikit-learn: no words at all, or one class among the rows
        return None
    return {"name": name, "score": score, "rows": min(len(source.splits["train"]), QUICK_ROWS)}


def quick_score(source: Source, transform: Transform, metric: str | None) -> float:
    """The test score of the quick baseline."""
    rows = {role: examples(source.splits[role], QUICK_ROWS) for role in ROLES}
    inputs, targets = {role: x for role, (x, _) in rows.items()}, {role: y for role, (_, y) in rows.items()}
    features, _ = featurise(inputs, source.modality, transform)
    task: Any = source.task
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a fit is not quite done after so many steps
        model, _ = best_model(features, targets, task, metric, QUICK_STRENGTHS)
    found = outputs_and_targets(answers(model, features["test"], task, len(source.classes)), targets["test"])
    return score(metric or HEADLINE[task], task, *found)


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
        function = lambda raws: hog(np.stack([transform.pixels(raw).numpy() for raw in raws]))  # noqa: E731
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


def hog(images: NDArray[np.uint8], bins: int = 9) -> NDArray[np.float32]:
    """Histograms of oriented gradients (Dalal & Triggs 2005): (n, channels, side, side) to (n, cells · bins).

    Each pixel votes with its gradient's length for the two nearest of nine unsigned orientations, in cells of an
    eighth of the side; a cell is divided by the energy of its 3 × 3 neighbourhood.
    """
    grey = images.astype(np.float32).mean(1)
    down, across = np.gradient(grey, axis=(1, 2))
    length = np.hypot(down, across)
    angle = np.arctan2(down, across) % np.pi / np.pi * bins
    lower = np.floor(angle).astype(int)
    share = angle - lower
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
) -> tuple[Any, float]:
    """The model of the strength that the validation split prefers, and its score there."""

    def judged(model: Any) -> float:
        if metric is None:
            return float(model.score(features["validation"], targets["validation"]))
        return score(
            metric, task, *outputs_and_targets(answers(model, features["validation"], task), targets["validation"])
        )

    fitted = [create(task, strength).fit(features["train"], targets["train"]) for strength in strengths]
    scores = [judged(model) for model in fitted]
    best = int(np.argmax(scores))
    return fitted[best], scores[best]


def create(task: str, strength: float) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge

    return Ridge(alpha=1 / strength) if task == "regression" else LogisticRegression(C=strength, max_iter=500)


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
        "config": yaml_file.to_dict(config),
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
    """Examples a second over a batch, and seconds for one, features included."""
    few = raws[: min(len(raws), 256)]
    started = time.perf_counter()
    answers(model, featurise_raw(few), task)
    throughput = len(few) / (time.perf_counter() - started)
    times = []
    for number in range(min(20, len(few))):
        started = time.perf_counter()
        answers(model, featurise_raw(few[number : number + 1]), task)
        times.append(time.perf_counter() - started)
    return {"throughput": throughput, "latency": float(np.median(times)), "threads": 1}
