"""Classifier and Regressor in scikit-learn's manner."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import weft
from training.runs import sentences


@parametrize_with_checks([weft.Classifier(epochs=20), weft.Regressor(epochs=20)])
def test_scikit_learn_accepts_the_estimators(estimator: Any, check: Any) -> None:
    """check_estimator, check by check; none is excepted."""
    check(estimator)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), None, 1e300])
@pytest.mark.parametrize("images", [False, True])
def test_a_number_that_is_missing_or_infinite_is_named_by_its_row(bad: float | None, images: bool) -> None:
    X = np.zeros((6, 8, 8)) if images else ["a b", "c"] * 3
    with pytest.raises(ValueError, match=r"row 3 .*not finite"):
        weft.Regressor("lenet5" if images else "lstm_text", epochs=1).fit(X, [1.0, 2.0, 3.0, bad, 4.0, 5.0])


def test_in_a_pipeline_and_in_cross_validation() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), weft.Classifier(epochs=10, network={"hidden": [32]}))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.93
    X, y = load_diabetes(return_X_y=True)
    assert cross_val_score(weft.Regressor(epochs=20, network={"hidden": [16]}), X, y, cv=3).mean() > 0.2


def test_the_same_seed_gives_the_same_network_and_survives_pickling() -> None:
    X, y = load_diabetes(return_X_y=True)
    one = weft.Regressor(epochs=2, random_state=3).fit(X, y)
    same, other = clone(one).fit(X, y), weft.Regressor(epochs=2, random_state=4).fit(X, y)
    assert np.array_equal(one.predict(X), same.predict(X))
    assert not np.array_equal(one.predict(X), other.predict(X))
    assert np.array_equal(pickle.loads(pickle.dumps(one)).predict(X), one.predict(X))


def test_predicting_leaves_the_network_as_it_is() -> None:
    """Another thread may be using it."""
    X, y = load_diabetes(return_X_y=True)
    model = weft.Regressor(epochs=1).fit(X, y)
    kinds: list[torch.dtype] = []
    layer = next(module for module in model._precise.modules() if isinstance(module, torch.nn.Linear))
    layer.register_forward_hook(lambda *_: kinds.append(next(model.predictor_.network.parameters()).dtype))
    model.predict(X)
    assert kinds == [torch.float32]


@pytest.mark.parametrize("share", [0.01, 0.05])
def test_a_rare_class_is_fitted_to_the_end(share: float) -> None:
    """Also where there is nothing to learn but how rare it is."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 4)), rng.random(3000) < share
    classifier = weft.Classifier(epochs=8, batch_size=16, network={"hidden": [16]}).fit(X, y)
    assert classifier.predict_proba(X)[:, 1].mean() == pytest.approx(share, abs=0.02)


def test_numbers_with_a_heavy_tail_are_fitted_to_the_end() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    y = np.exp(1.5 * X[:, 0])
    assert weft.Regressor(epochs=8, network={"hidden": [32]}).fit(X, y).score(X, y) > 0.3


def test_images_and_texts_are_classified_too() -> None:
    X, y = load_digits(return_X_y=True)
    images = (X.reshape(-1, 1, 8, 8) * 15).astype(np.uint8)
    network = {"patch_size": 2, "dim": 32, "depth": 2, "token_dim": 16, "hidden_dim": 64}
    mixer = weft.Classifier("mixer_nano_p4_32", epochs=6, lr=3e-3, network=network).fit(images[:1400], y[:1400])
    assert mixer.score(images[1400:], y[1400:]) > 0.75
    rows = [line.rpartition(",") for line in sentences().read_text().splitlines()[1:]]
    texts, labels = [text for text, _, _ in rows], [label for _, _, label in rows]
    preprocessing = {"max_length": 32, "vocab_size": 512}
    conv = weft.Classifier("conv_text", epochs=8, lr=3e-3, preprocessing=preprocessing).fit(texts[:500], labels[:500])
    assert conv.score(texts[500:], labels[500:]) > 0.8


def test_an_estimator_is_saved_as_a_run_is(tmp_path: Path) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    classifier = weft.Classifier(epochs=2).fit(X, y)
    classifier.save_pretrained(str(tmp_path / "net"))
    assert weft.load(tmp_path / "net").predict(list(X[:20])) == [str(label) for label in classifier.predict(X[:20])]


def test_bad_targets_are_refused() -> None:
    with pytest.raises(ValueError, match="one class only"):
        weft.Classifier().fit(np.zeros((4, 2)), np.zeros(4))
    with pytest.raises(ValueError, match="3 inputs and 2 labels"):
        weft.Classifier("conv_text").fit(["a", "b", "c"], [0, 1])
