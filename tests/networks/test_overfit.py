"""Every family learns one batch by heart: nothing is disconnected, and the start is a healthy one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from networks.small import CLASSES, SMALL, batch, small
from weft.networks.registry import create_model
from weft.training.metrics import Task
from weft.training.objective import example_losses

STEPS, ENOUGH = 80, 0.05

GATES: dict[str, tuple[str, dict[str, Any]]] = {
    f"gate {form}": ("gmlp_nano_p4_32", {"gate": form}) for form in ("linear", "additive", "multiplicative")
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {**{name: (name, {}) for name in SMALL}, **GATES}


def fit(network: torch.nn.Module, inputs: dict[str, torch.Tensor], task: Task, targets: torch.Tensor) -> list[float]:
    """Losses of up to `STEPS` steps of Adam, ending as soon as the loss is small enough."""
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    losses: list[float] = []
    while len(losses) < STEPS and (not losses or losses[-1] > ENOUGH):
        optimiser.zero_grad()
        loss = example_losses(task, network(**inputs), targets).mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("case", CASES)
def test_one_batch_is_learned_by_heart(case: str) -> None:
    """F3 with K classes, for every family: from chance to almost no loss."""
    name, changes = CASES[case]
    network = small(name, drop_rate=0.0, **changes).train()
    if name == "bert_tiny":
        network = small(name, drop_rate=0.0, head_drop_rate=0.0).train()
    losses = fit(network, batch(network), "classes", torch.arange(6) % CLASSES)
    assert losses[0] > 0.7
    assert losses[-1] <= ENOUGH


@pytest.mark.parametrize("task", ["binary", "regression"])
@pytest.mark.parametrize("name", ["mlp", "mixer_nano_p4_32", "gmlp_text_tiny"])
def test_one_output_learns_yes_or_no_and_numbers(name: str, task: Task) -> None:
    """F3: one logit or one linear value, on images and text."""
    network = small(name, num_classes=1).train()
    targets = torch.tensor([0.0, 1, 1, 0, 1, 0]) if task == "binary" else torch.tensor([-1.0, 2, 0.5, 0, 1, -2])
    assert fit(network, batch(network), task, targets)[-1] <= ENOUGH


@pytest.mark.parametrize("task", ["binary", "classes", "regression"])
def test_a_perceptron_stack_learns_from_vectors(task: Task) -> None:
    """F1, F3: vectors in, each of the three tasks out."""
    torch.manual_seed(0)
    network = create_model("mlp", in_features=5, hidden=(32,), num_classes=CLASSES if task == "classes" else 1)
    targets = torch.arange(6) % (CLASSES if task == "classes" else 2)
    targets = targets if task == "classes" else targets.float()
    assert fit(network, {"x": torch.randn(6, 5)}, task, targets)[-1] <= ENOUGH
