"""F3: the losses against their formulas, one value per example."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.training.objective import example_losses, outputs_for

logits = st.floats(-20, 20)


@settings(deadline=None, max_examples=40)
@given(logit=logits, target=st.sampled_from([0.0, 0.3, 1.0]), smoothing=st.sampled_from([0.0, 0.1]))
def test_binary_loss_is_the_cross_entropy_of_one_logit(logit: float, target: float, smoothing: float) -> None:
    """F3: −y log p − (1−y) log(1−p), with the minus sign that the slide forgot."""
    y = target * (1 - smoothing) + smoothing / 2
    expected = y * math.log1p(math.exp(-logit)) + (1 - y) * math.log1p(math.exp(logit))
    outputs = torch.tensor([[logit]], dtype=torch.float64)
    found = example_losses("binary", outputs, torch.tensor([target], dtype=torch.float64), smoothing)
    assert found.shape == (1,)
    assert found.item() == pytest.approx(expected, rel=1e-6, abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(values=st.lists(logits, min_size=2, max_size=6), smoothing=st.sampled_from([0.0, 0.1]), data=st.data())
def test_class_loss_is_softmax_cross_entropy(values: list[float], smoothing: float, data: st.DataObject) -> None:
    """F3: −Σ y log softmax(output), for a class number and for the same class as probabilities."""
    label = data.draw(st.integers(0, len(values) - 1))
    z = np.array(values)
    logp = z - z.max() - np.log(np.exp(z - z.max()).sum())
    y = np.full(len(values), smoothing / len(values))
    y[label] += 1 - smoothing
    outputs = torch.tensor([values], dtype=torch.float64)
    by_number = example_losses("classes", outputs, torch.tensor([label]), smoothing)
    by_row = example_losses("classes", outputs, torch.tensor(y)[None])
    assert by_number.item() == pytest.approx(-(y * logp).sum(), rel=1e-6, abs=1e-9)
    assert by_row.item() == pytest.approx(-(y * logp).sum(), rel=1e-6, abs=1e-9)


def test_regression_loss_is_the_squared_error_of_vectors_and_images() -> None:
    """F3: the mean square over an example's values, for one value and for a whole picture."""
    generator = torch.Generator().manual_seed(0)
    one, target = torch.randn(4, 1, generator=generator), torch.randn(4, generator=generator)
    assert torch.allclose(example_losses("regression", one, target), (one[:, 0] - target) ** 2)
    image, picture = torch.randn(2, 2, 1, 3, 3, generator=generator)
    expected = torch.stack([((image[i] - picture[i]) ** 2).mean() for i in range(2)])
    assert torch.allclose(example_losses("regression", image, picture), expected)


def test_losses_are_one_value_an_example_in_the_order_of_the_batch() -> None:
    """F3: sums and counts are the caller's, so a batch may be cut anywhere."""
    generator = torch.Generator().manual_seed(1)
    for task, outputs, targets in [
        ("binary", torch.randn(6, 1, generator=generator), torch.tensor([0.0, 1, 0, 1, 1, 0])),
        ("classes", torch.randn(6, 3, generator=generator), torch.tensor([0, 1, 2, 0, 1, 2])),
        ("regression", torch.randn(6, 1, generator=generator), torch.randn(6, generator=generator)),
    ]:
        whole = example_losses(task, outputs, targets)  # type: ignore[arg-type]
        halves = [example_losses(task, outputs[cut], targets[cut]) for cut in (slice(2), slice(2, 6))]  # type: ignore[arg-type]
        assert torch.equal(whole, torch.cat(halves))


def test_a_confident_right_answer_costs_nothing_and_a_wrong_one_much() -> None:
    """F3, erratum: the sign."""
    right = example_losses("classes", torch.tensor([[9.0, -9.0]]), torch.tensor([0]))
    wrong = example_losses("classes", torch.tensor([[9.0, -9.0]]), torch.tensor([1]))
    assert 0 <= right.item() < 1e-6 < 17 < wrong.item()


def test_how_many_outputs_a_task_needs() -> None:
    assert [outputs_for(task, 5) for task in ("binary", "classes", "regression")] == [1, 5, 1]  # type: ignore[arg-type]
