"""Metrics against naive counting, known values and the binomial distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import confusion_matrix, f1_score

from weft.studies.statistics.intervals import mean_of
from weft.training.metrics import (
    accuracy_interval,
    bootstrap,
    calibration_error,
    class_probabilities,
    headline,
    measure,
)


def test_metrics_of_three_classes_by_hand() -> None:
    outputs = torch.eye(3)[torch.tensor([0, 0, 1, 2, 2, 1])] * 10
    metrics = measure("classes", outputs, torch.tensor([0, 0, 1, 1, 2, 2]), 3)
    assert metrics["accuracy"] == pytest.approx(4 / 6)
    assert metrics["confusion"] == [[2, 0, 0], [0, 1, 1], [0, 1, 1]]
    assert metrics["macro_f1"] == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert "auroc" not in metrics


def test_auroc_is_the_share_of_pairs_in_the_right_order() -> None:
    torch.manual_seed(0)
    outputs, targets = torch.randn(60, 1), (torch.rand(60) > 0.6).float()
    positive, negative = outputs[targets == 1, 0], outputs[targets == 0, 0]
    pairs = (positive[:, None] > negative[None]).double().mean()
    metrics = measure("binary", outputs, targets, 2)
    assert metrics["auroc"] == pytest.approx(float(pairs))
    assert metrics["accuracy"] == headline("binary", outputs, targets)


def test_a_network_that_answers_not_a_number_is_measured_without_auroc() -> None:
    found = measure("binary", torch.full((4, 1), torch.nan), torch.tensor([0, 1, 0, 1.0]))
    assert "auroc" not in found and found["accuracy"] == 0.5


def test_a_class_that_is_absent_is_no_error() -> None:
    metrics = measure("classes", torch.eye(3)[[0, 0]], torch.tensor([0, 0]), 3)
    assert metrics["accuracy"] == 1 and len(metrics["confusion"]) == 3


def test_right_answers_to_one_class_of_two_have_a_macro_f1_of_one() -> None:
    metrics = measure("binary", torch.full((5, 1), 3.0), torch.ones(5), 2)
    assert metrics["accuracy"] == metrics["macro_f1"] == 1


@pytest.mark.parametrize(("right", "count"), [(15, 15), (0, 15), (1, 1), (30, 40), (999, 1000)])
def test_the_interval_of_an_accuracy_is_that_of_comparisons(right: int, count: int) -> None:
    known = mean_of((np.arange(count) < right).astype(float)[None])
    assert accuracy_interval(right, count) == pytest.approx([known.low, known.high])


def test_all_answers_right_on_few_rows_are_no_proof_of_a_perfect_network() -> None:
    low, high = measure("classes", torch.eye(3)[[0, 1, 2] * 5], torch.tensor([0, 1, 2] * 5), 3)["accuracy_interval"]
    assert low < 0.85 and high == 1


def test_the_bootstrap_interval_is_that_of_the_binomial() -> None:
    """The mean of resampled zeros and ones is a binomial share: 1.96 deviations to either side."""
    correct = torch.cat([torch.ones(800), torch.zeros(200)])
    low, high = bootstrap(correct)
    spread = 1.96 * math.sqrt(0.8 * 0.2 / 1000)
    assert low == pytest.approx(0.8 - spread, abs=0.003)
    assert high == pytest.approx(0.8 + spread, abs=0.003)


def test_calibration_error_of_a_known_mixture() -> None:
    """Confidence 0.9 with 60 % right, and confidence 0.6 with 60 % right: half of the examples are 0.3 off."""
    confidence = torch.tensor([0.9] * 10 + [0.6] * 10)
    probabilities = torch.stack([confidence, 1 - confidence], dim=1)
    correct = torch.tensor(([1.0] * 6 + [0.0] * 4) * 2)
    assert calibration_error(probabilities, correct) == pytest.approx(0.15)


def test_regression_metrics() -> None:
    targets = torch.tensor([1.0, 2.0, 3.0, 4.0])
    metrics = measure("regression", torch.tensor([[1.0], [2.0], [3.0], [6.0]]), targets)
    assert metrics["mae"] == pytest.approx(0.5)
    assert metrics["rmse"] == pytest.approx(1.0)
    assert metrics["r2"] == pytest.approx(1 - 4 / 5)
    assert measure("regression", torch.ones(3, 1), torch.ones(3))["r2"] == 0


def test_one_logit_becomes_two_probabilities() -> None:
    probabilities = class_probabilities("binary", torch.tensor([[0.0], [100.0]]))
    np.testing.assert_allclose(probabilities, [[0.5, 0.5], [0, 1]], atol=1e-12)


def test_counts_say_what_scikit_learn_says() -> None:
    draw = np.random.default_rng(0)
    for _ in range(50):
        classes, rows = int(draw.integers(2, 9)), int(draw.integers(1, 40))
        targets, answers = draw.integers(0, classes, rows), draw.integers(0, classes, rows)
        found = measure("classes", torch.eye(classes)[answers], torch.from_numpy(targets), classes)
        assert found["confusion"] == confusion_matrix(targets, answers, labels=range(classes)).tolist()
        assert found["macro_f1"] == pytest.approx(f1_score(targets, answers, average="macro", zero_division=0))
