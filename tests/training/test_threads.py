"""Several trainings and predictions at once in one process: each gives what it gives alone, and none is noticed."""

from __future__ import annotations

import os
import signal
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import joblib
import numpy as np
import pytest
import torch
from sklearn.model_selection import cross_val_score

import weft
from training.runs import configure, train

THREADS = 4
NETWORKS: dict[str, dict[str, Any]] = {
    "mlp": {"hidden": [16, 16], "drop_rate": 0.3},
    "mixer_nano_p4_32": {"patch_size": 2, "dim": 8, "depth": 2, "token_dim": 8, "hidden_dim": 8, "drop_path_rate": 0.4},
}


def task(number: int) -> tuple[weft.Classifier, np.ndarray, np.ndarray]:
    """An estimator that drops much, and data of its own."""
    rng = np.random.default_rng(number)
    labels = rng.integers(0, 3, 60)
    model = list(NETWORKS)[number % 2]
    rows = rng.normal(size=(60, 5)) if model == "mlp" else rng.integers(0, 256, (60, 1, 8, 8), dtype=np.uint8)
    return weft.Classifier(model, epochs=8, network=NETWORKS[model], random_state=number), rows, labels


def fitted(number: int) -> tuple[list[np.ndarray], np.ndarray]:
    """The weights and the answers."""
    estimator, rows, labels = task(number)
    estimator.fit(rows, labels)
    weights = [value.numpy() for value in estimator.predictor_.network.state_dict().values()]
    return weights, estimator.predict_proba(rows)


def test_fits_in_threads_give_the_bits_of_fits_one_after_the_other() -> None:
    alone = [fitted(number) for number in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(fitted, range(THREADS)))
    for (weights, answers), (same_weights, same_answers) in zip(alone, together, strict=True):
        assert all(np.array_equal(one, other) for one, other in zip(weights, same_weights, strict=True))
        assert np.array_equal(answers, same_answers)


def test_a_fitted_estimator_predicts_in_threads_what_it_predicts_alone() -> None:
    words = np.random.default_rng(0).choice(["red", "green", "blue", "dark", "light"], (200, 6))
    texts, labels = [" ".join(row) for row in words], words[:, 0]
    text = weft.Classifier("conv_text", epochs=1, preprocessing={"max_length": 16, "vocab_size": 64})
    for estimator, rows, known in (task(0), task(1), (text, texts, labels)):
        estimator.fit(rows, known)
        parts = [rows[start::8] for start in range(8)]
        with ThreadPoolExecutor(THREADS) as pool:
            together = list(pool.map(estimator.predict_proba, parts))
        assert all(
            np.array_equal(one, estimator.predict_proba(part)) for one, part in zip(together, parts, strict=True)
        )


def test_cross_validation_in_threads_gives_the_scores_of_one_thread() -> None:
    estimator, rows, labels = task(0)
    with joblib.parallel_backend("threading", n_jobs=2):
        together = cross_val_score(estimator, rows, labels, cv=2, n_jobs=2)
    assert np.array_equal(together, cross_val_score(estimator, rows, labels, cv=2))


def surroundings() -> dict[str, Any]:
    """What a library has no business to change."""
    return {
        "torch": torch.get_rng_state().tolist(),
        "numpy": np.random.get_state()[1].tolist(),
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "type": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "filters": list(warnings.filters),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "environment": dict(os.environ),
    }


@pytest.mark.parametrize("number", [0, 1])
def test_fitting_and_predicting_change_nothing_around_them(number: int) -> None:
    before = surroundings()
    fitted(number)
    assert surroundings() == before


def test_a_run_and_its_loading_leave_torchs_generator_alone(tmp_path: Any) -> None:
    """And so nothing in training draws from it, whose state no checkpoint holds."""
    before = torch.get_rng_state()
    for family in ("mlp", "text"):
        train(configure(family, steps=3), tmp_path / family)
        weft.load(tmp_path / family)
    assert torch.equal(torch.get_rng_state(), before)
