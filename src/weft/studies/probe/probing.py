"""Several trained networks on one source: the scores of simple classifiers on their features, in one summary.

    summary = probe(ProbeConfig(starts=("efficientnet_lite0", "runs/resnet"), source="photos/"))
    summary["rows"][0]["classifiers"]["logistic"]["mean"]     # on the test split; validation has chosen its strength

Features come from the same cache as those of `weft finetune --frozen`; scores are kept beside them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft.data.open.source import ROLES, Source
from weft.data.open.splits import spread
from weft.data.read.cache import Cache, digest
from weft.errors import WeftError
from weft.machine import cores
from weft.studies.probe import classifiers
from weft.studies.probe.classifiers import NEIGHBOURS, Ridge, nearest_targets, votes
from weft.studies.probe.config import ProbeConfig
from weft.studies.probe.shots import fitting_shots, shot_scores
from weft.studies.statistics.intervals import difference, mean_of
from weft.training.features.linear import Scale, one_thread
from weft.training.features.store import FrozenNetwork, features_of, table_key
from weft.training.finetuning.config import FinetuneConfig, name_of
from weft.training.finetuning.lineage import learnt_record, refuse_other_cut
from weft.training.finetuning.prepare import find_frozen
from weft.training.run.inputs import read_source

VERSION = "3"  # raise it when the same features would give other scores
MOST = 20_000  # training rows that logistic regression sees, spread evenly; more take minutes
WORDS = {"neighbours": "k nearest neighbours", "ridge": "ridge regression", "logistic": "logistic regression"}

Say = Callable[[str], None]
Split = dict[str, Tensor]


def probe(config: ProbeConfig, say: Say = print) -> dict[str, Any]:
    """The summary of all networks, best first by the validation split."""
    asked = [finetuning(config, start) for start in dict.fromkeys(config.starts)]
    source = read_source(asked[0])
    if source.task not in ("classes", "binary"):
        raise WeftError(f"{source.name} has no classes ({source.task}), and a probe tells classes apart; use --task")
    shots, left = fitting_shots(labels(source, "train"), source.classes, config.shots)
    known = [known_rows(one.start, source, config) for one in asked]
    found = [find_frozen(one, source) for one in asked]  # a bad one is refused before the others are read with
    rows = []
    for name, one in zip(names_of(asked), found, strict=True):
        started = time.perf_counter()
        for note in one.notes:
            say(note)
        row = scores_of(source, one.built(), shots, config, say)
        rows.append({"name": name, "seconds": time.perf_counter() - started, **row})
    rows.sort(key=standing, reverse=True)
    notes = [*source.notes, *([left] if left else []), *filter(None, known)]
    recommended = recommendation(rows, no_better_than_a_guess(rows[0], source))
    for row in rows:
        del row["held"]
    return {
        "source": source.name,
        "classes": len(source.classes),
        "counts": {role: source.count(role) for role in ROLES},
        "shots": list(shots),
        "draws": config.draws,
        "rows": rows,
        "notes": notes,
        "recommendation": recommended,
    }


def known_rows(start: str, source: Source, config: ProbeConfig) -> str:
    """What to say of a network that has learnt from this source; refused where it knows rows that would be tested."""
    record = learnt_record(start, source.fingerprint)
    if record is None:
        return ""
    if source.held_out:
        refuse_other_cut(start, record, config.reading, "probe another network")
    return (
        f"{start} has learnt from the training rows of {source.name}: its k-shot figures are not those of few rows, "
        "and the validation split may favour it"
    )


def standing(row: dict[str, Any]) -> tuple[float, float]:
    """What networks are ordered by: the best classifier on the validation split, among equals the mean of all."""
    held = [found["validation"] for found in row["classifiers"].values()]
    return max(held), float(np.mean(held))


def finetuning(config: ProbeConfig, start: str) -> FinetuneConfig:
    """The same question as fine-tuning asks it: what is started from, what is read, and how."""
    return FinetuneConfig(
        start=start,
        source=config.source,
        reading=config.reading,
        transform=config.transform,
        unsafe_pickle=config.unsafe_pickle,
    )


def names_of(asked: list[FinetuneConfig]) -> list[str]:
    """What each network is called: by the last part of its path, by all of it where others end alike."""
    names = [name_of(replace(one, model="")) for one in asked]
    return [one.start if names.count(name) > 1 else name for name, one in zip(names, asked, strict=True)]


def labels(source: Source, role: str) -> Any:
    return np.asarray(source.splits[role].targets).astype(np.int64)


def scores_of(
    source: Source, frozen: FrozenNetwork, shots: tuple[int, ...], config: ProbeConfig, say: Say
) -> dict[str, Any]:
    """The scores of one network, from the cache where the same were computed before."""
    features = {role: features_of(source, role, frozen, say) for role in ROLES}
    splits: Any = {role: source.splits[role] for role in ROLES}
    rows = [part for role in ROLES for part in (splits[role].rows.tobytes(), labels(source, role).tobytes())]
    keys = [table_key(source, splits[role], frozen) for role in ROLES]
    asked = json.dumps([VERSION, shots, config.draws, config.seed])

    def build() -> Split:
        scale = Scale.of(features["train"].x)
        x = {role: scale(found.x) for role, found in features.items()}
        targets = {role: torch.from_numpy(labels(source, role)) for role in ROLES}
        with one_thread():
            found = measured(x, targets, len(source.classes), shots, config.draws, config.seed)
        return {"json": torch.frombuffer(bytearray(json.dumps(found).encode()), dtype=torch.uint8)}

    stored = Cache().get(digest("probe", asked, *keys, *rows), f"probe of {source.name}", build)["json"]
    found: dict[str, Any] = json.loads(stored.numpy().tobytes())
    return {"features": features["train"].x.shape[1], **found}


def measured(x: Split, targets: Split, classes: int, shots: tuple[int, ...], draws: int, seed: int) -> dict[str, Any]:
    """Every classifier at the setting that the validation split prefers, and the k-shot figures; each on a core of its
    own, so that the figures do not depend on how many there are."""

    def fitted(tried: Classifier) -> tuple[dict[str, float], Tensor]:
        setting, held, right = max(tried(x, targets, classes), key=lambda one: float(one[1].double().mean()))
        score = float(held.double().mean())
        return {"setting": setting, "validation": score, **interval(right.double().numpy()[None])}, held

    def few(k: int) -> dict[str, float]:
        return interval(shot_scores(x, targets, classes, k, draws, seed))

    with ThreadPoolExecutor(cores(), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        begun = {name: pool.submit(fitted, tried) for name, tried in CLASSIFIERS.items()}
        shot = {k: pool.submit(few, k) for k in sorted(shots, reverse=True)}  # longest first
        both = {name: begun[name].result() for name in WORDS}
        found = {name: scores for name, (scores, _) in both.items()}
        best = max(CLASSIFIERS, key=lambda name: found[name]["validation"])  # of equals what fine-tuning starts from
        held = both[best][1].int().tolist()
        return {"classifiers": found, "best": best, "held": held, "shots": {str(k): shot[k].result() for k in shots}}


def interval(scores: Any) -> dict[str, float]:
    """Mean of (draws, test rows) with its interval, which covers draws and rows."""
    found = mean_of(scores)
    return {"mean": found.mean, "low": max(0.0, found.low), "high": min(1.0, found.high)}


Tried = Iterator[tuple[float, Tensor, Tensor]]  # a setting, and which validation and test rows are right with it
Classifier = Callable[[Split, Split, int], Tried]


def neighbours(x: Split, targets: Split, classes: int) -> Tried:
    most = min(max(NEIGHBOURS), len(x["train"]))
    near = {role: nearest_targets(x["train"], targets["train"], x[role], most) for role in ROLES[1:]}
    for count in NEIGHBOURS:
        if count <= most:
            said = {role: votes(found[:, :count], classes) for role, found in near.items()}
            yield count, said["validation"] == targets["validation"], said["test"] == targets["test"]


def ridge(x: Split, targets: Split, classes: int) -> Tried:
    """One strength, which the training rows choose by leaving each out."""
    fitted = Ridge.fit(x["train"], targets["train"], classes)
    said = {role: fitted.predict(x[role]) for role in ROLES[1:]}
    yield fitted.alpha, said["validation"] == targets["validation"], said["test"] == targets["test"]


def logistic(x: Split, targets: Split, classes: int) -> Tried:
    chosen = spread(len(x["train"]), MOST)
    rows, known = x["train"].numpy()[chosen], targets["train"].numpy()[chosen]
    for strength in classifiers.STRENGTHS:
        model = classifiers.logistic(rows, known, strength)
        said = {role: torch.from_numpy(model.predict(x[role].numpy())) for role in ROLES[1:]}
        yield strength, said["validation"] == targets["validation"], said["test"] == targets["test"]


CLASSIFIERS: dict[str, Classifier] = {"logistic": logistic, "ridge": ridge, "neighbours": neighbours}  # longest first


def recommendation(rows: list[dict[str, Any]], guess: str = "") -> str:
    """The network that the validation split prefers, with its figure on the test split, and what may be as good."""
    best, *others = rows
    found = best["classifiers"][best["best"]]
    span = f"{100 * found['low']:.1f}…{100 * found['high']:.1f} %"
    return (
        f"{best['name']} with {WORDS[best['best']]} does best on the validation split: "
        f"{100 * found['mean']:.1f} % on the test split ({span}){guess}{as_good(best, others)}"
    )


def no_better_than_a_guess(best: dict[str, Any], source: Source) -> str:
    """What to add where the best is not shown to be above always answering the most frequent class."""
    usual = int(np.bincount(labels(source, "train")).argmax())
    guess = float(np.mean(labels(source, "test") == usual))
    if best["classifiers"][best["best"]]["low"] > guess:
        return ""
    return (
        f", where always answering {source.classes[usual]!r} has {100 * guess:.1f} %: not shown to be better than that"
    )


def as_good(best: dict[str, Any], others: list[dict[str, Any]]) -> str:
    """The networks that are not shown to be worse on the same validation rows."""
    first = np.array([best["held"]], dtype=np.float64)
    open_ = [row["name"] for row in others if difference(first, np.array([row["held"]], dtype=np.float64)).low <= 0]
    if not open_:
        return ""
    return f"; on {first.shape[1]:,} validation rows it cannot be told apart from {' or '.join(open_)}"
