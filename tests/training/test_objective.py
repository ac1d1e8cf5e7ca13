"""The loss is a global sum over a global count (F3)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from weft.errors import WeftError
from weft.training.objective import create_objective

LABELS = np.array([0, 0, 0, 1, 2, 2])


def test_shares_of_micro_batches_add_up_to_the_loss_of_the_batch() -> None:
    objective = create_objective("classes", LABELS, 3, smoothing=0.1, class_weights="balanced")
    outputs, targets = torch.randn(6, 3), torch.tensor(LABELS)
    count = objective.example_weights(targets).sum()
    whole = objective.share(outputs, targets, count)
    parts = sum(objective.share(outputs[cut], targets[cut], count) for cut in (slice(0, 1), slice(1, 4), slice(4, 6)))
    torch.testing.assert_close(parts, whole)


def test_balanced_weights_are_torchs_inverse_frequencies() -> None:
    objective = create_objective("classes", LABELS, 3, class_weights="balanced")
    outputs, targets = torch.randn(6, 3), torch.tensor(LABELS)
    count = objective.example_weights(targets).sum()
    expected = F.cross_entropy(outputs, targets, weight=torch.tensor([1 / 3, 1.0, 1 / 2]))
    torch.testing.assert_close(objective.share(outputs, targets, count), expected)


def test_a_mixture_of_classes_has_the_mixture_of_their_weights() -> None:
    objective = create_objective("classes", LABELS, 3, class_weights=[1.0, 2.0, 4.0])
    assert objective.weights is not None
    mixed = torch.tensor([[0.25, 0.75, 0.0]])
    assert objective.example_weights(mixed) == pytest.approx(
        float(0.25 * objective.weights[0] + 0.75 * objective.weights[1])
    )


def test_binary_weights_follow_the_label() -> None:
    objective = create_objective("binary", np.array([0, 0, 0, 1.0]), 2, class_weights="balanced")
    weights = objective.example_weights(torch.tensor([0.0, 1.0]))
    assert float(weights[1] / weights[0]) == pytest.approx(3)


@pytest.mark.parametrize(("task", "labels"), [("classes", LABELS), ("binary", np.array([0, 1, 1, 1.0]))])
def test_the_guess_is_the_loss_of_the_best_constant_output(task: str, labels: np.ndarray) -> None:
    """Found by minimising over constant outputs."""
    objective = create_objective(task, labels, len(np.unique(labels)), smoothing=0.1)
    constant = torch.zeros(1, 3 if task == "classes" else 1, requires_grad=True)
    targets = torch.tensor(labels, dtype=torch.int64 if task == "classes" else torch.float32)
    descent = torch.optim.LBFGS([constant], max_iter=100)

    def loss() -> torch.Tensor:
        descent.zero_grad()
        value = objective.losses(constant.expand(len(targets), -1), targets).mean()
        value.backward()
        return value

    descent.step(loss)
    assert objective.guess == pytest.approx(float(loss()), abs=1e-4)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("task", "weights"), [("classes", "balanced"), ("binary", None), ("regression", None)])
def test_the_guess_is_what_a_constant_answer_loses_on_all_examples(task: str, weights: Any, smoothing: float) -> None:
    """Batch by batch it loses more or less, and the parts of micro-batches add up."""
    smoothing = 0.0 if task == "regression" else smoothing
    labels = np.array([0, 1, 1, 1.0]) if task == "binary" else LABELS
    objective = create_objective(task, labels.astype(np.float32), 2 if task == "binary" else 3, smoothing, weights)
    targets = torch.tensor(labels, dtype=torch.int64 if task == "classes" else torch.float32)
    count = objective.count(targets, len(targets), lambda total: total)
    parts = [objective.chance(targets[cut], count) for cut in (slice(0, 1), slice(1, 4), slice(4, None))]
    assert float(sum(parts)) == pytest.approx(objective.guess, rel=1e-5)


def test_the_spread_tells_how_few_examples_carry_the_loss_of_a_guess() -> None:
    assert create_objective("classes", np.arange(7), 7).spread == pytest.approx(1)
    assert 50 < create_objective("binary", np.arange(1000) < 10).spread < 100
    rng = np.random.default_rng(0)
    assert create_objective("regression", rng.normal(size=10_000)).spread == pytest.approx(3, abs=0.2)
    assert create_objective("regression", np.exp(1.5 * rng.normal(size=10_000))).spread > 50
    assert create_objective("regression", np.ones(5)).spread == 1


def test_numbers_are_learnt_in_units_of_their_deviation() -> None:
    targets = np.array([100.0, 300.0, 500.0], dtype=np.float32)
    objective = create_objective("regression", targets)
    assert objective.guess == pytest.approx(1)
    assert objective.losses(torch.zeros(3, 1), torch.tensor(targets)).mean() == pytest.approx(1)
    standard = (torch.tensor(targets) - targets.mean()) / targets.std()
    torch.testing.assert_close(objective.answers(standard), torch.tensor(targets))


def test_uniform_classes_are_guessed_at_log_k() -> None:
    assert create_objective("classes", np.arange(7), 7).guess == pytest.approx(math.log(7))


@pytest.mark.parametrize(
    ("task", "options", "words"),
    [
        ("none", {}, "--target"),
        ("regression", {"smoothing": 0.1}, "need classes"),
        ("classes", {"class_weights": [1.0, 2.0]}, "2 class weights for 3 classes"),
    ],
)
def test_objectives_that_cannot_be_are_refused(task: str, options: dict, words: str) -> None:
    with pytest.raises(WeftError, match=words):
        create_objective(task, LABELS, 3, **options)


def test_targets_far_from_zero_are_centred_before_they_are_rounded() -> None:
    targets = 1e9 + np.random.default_rng(0).normal(size=200)
    objective = create_objective("regression", targets)
    right = torch.from_numpy((targets - objective.centre) / objective.scale).float()[:, None]
    assert objective.mean_loss(right, torch.from_numpy(targets)) < 1e-10
    assert objective.headline(right, torch.from_numpy(targets)) > 0.999999
