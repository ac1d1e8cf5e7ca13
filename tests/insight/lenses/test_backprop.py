"""F4: back-propagation written out in NumPy against autograd, its cost, and gradients by layer."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import weft
from weft.data.batch.loader import Batch
from weft.insight.lenses.backprop import worked_example
from weft.insight.lenses.backprop.ablations import NORMS, Unshortened, variants
from weft.insight.lenses.backprop.gradient_sizes import gradient_sizes, stations
from weft.insight.lenses.backprop.lens import cost_by_depth, stack
from weft.insight.lenses.backprop.numpy_backprop import (
    FUNCTIONS,
    Activate,
    Convolution,
    Dense,
    Flatten,
    Part,
    forward,
    naive,
    recursion,
    softmax_loss,
    squared_loss,
)
from weft.networks.registry import configured
from weft.nn.activations import ACTIVATIONS

ACTS = sorted(FUNCTIONS)


def torch_outputs(parts: list[Part], x: np.ndarray) -> tuple[torch.Tensor, list[dict[str, torch.Tensor]], torch.Tensor]:
    """The same network by torch, with leaves to differentiate by."""
    source = value = torch.tensor(x, requires_grad=True)
    leaves: list[dict[str, torch.Tensor]] = []
    for part in parts:
        own: dict[str, torch.Tensor] = {}
        if isinstance(part, Dense):
            own = {name: torch.tensor(getattr(part, name), requires_grad=True) for name in ("weight", "bias")}
            value = nn.functional.linear(value, own["weight"], own["bias"])
        elif isinstance(part, Convolution):
            own = {name: torch.tensor(getattr(part, name), requires_grad=True) for name in ("kernel", "bias")}
            value = nn.functional.conv2d(value, own["kernel"], own["bias"])
        elif isinstance(part, Activate):
            value = ACTIVATIONS[part.act].function(value)
        else:
            value = value.flatten(1)
        leaves.append(own)
    return value, leaves, source


def weights(rng: np.random.Generator, outputs: int, *inputs: int) -> np.ndarray:
    """Weights whose sums stay of the size of their inputs: torch's softplus is a straight line above 20."""
    return rng.normal(size=(outputs, *inputs)) / np.sqrt(np.prod(inputs))


def check_against_autograd(parts: list[Part], x: np.ndarray, classes: np.ndarray) -> None:
    values = forward(parts, x)
    loss, delta = softmax_loss(values[-1], classes)
    ours = recursion(parts, values, delta)
    outputs, leaves, source = torch_outputs(parts, x)
    theirs = nn.functional.cross_entropy(outputs, torch.from_numpy(classes))
    theirs.backward()
    assert loss == pytest.approx(float(theirs.detach()), abs=1e-10)
    for found, own in zip(ours.gradients, leaves, strict=True):
        assert found.keys() == own.keys()
        for name, leaf in own.items():
            np.testing.assert_allclose(found[name], leaf.grad.numpy(), rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.input, source.grad.numpy(), rtol=0, atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 4), st.lists(st.integers(1, 6), min_size=2, max_size=5), st.sampled_from(ACTS), st.integers(0, 99)
)
def test_f4_mlp_equals_autograd(batch: int, widths: list[int], act: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts: list[Part] = []
    for inputs, outputs in pairwise(widths):
        parts += [Dense(weights(rng, outputs, inputs), rng.normal(size=outputs)), Activate(act)]
    check_against_autograd(parts[:-1], rng.normal(size=(batch, widths[0])), rng.integers(0, widths[-1], batch))


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(0, 3),
    st.sampled_from(ACTS), st.integers(0, 99),
)  # fmt: skip
def test_f4_convnet_equals_autograd(
    batch: int, channels: int, filters: int, side: int, room: int, act: str, seed: int
) -> None:
    """Two convolutions, an activation after each, flattened into a dense layer; kernels need not be square."""
    rng = np.random.default_rng(seed)
    height, width = 2 * side + room, 2 * side + room + 1
    second = (max(1, side - 1), side)
    left = (height - side + 1 - second[0] + 1) * (width - side + 1 - second[1] + 1)
    parts: list[Part] = [
        Convolution(weights(rng, filters, channels, side, side), rng.normal(size=filters)),
        Activate(act),
        Convolution(weights(rng, 2, filters, *second), rng.normal(size=2)),
        Activate(act),
        Flatten(),
        Dense(weights(rng, 3, 2 * left), rng.normal(size=3)),
    ]
    check_against_autograd(parts, rng.normal(size=(batch, channels, height, width)), rng.integers(0, 3, batch))


def test_f4_squared_error_equals_autograd() -> None:
    outputs, targets = np.random.default_rng(0).normal(size=(2, 4, 3))
    loss, delta = squared_loss(outputs, targets)
    leaf = torch.tensor(outputs, requires_grad=True)
    theirs = nn.functional.mse_loss(leaf, torch.tensor(targets))
    theirs.backward()
    assert loss == pytest.approx(float(theirs.detach()), abs=1e-12)
    np.testing.assert_allclose(delta, leaf.grad.numpy(), atol=1e-12)


@pytest.mark.parametrize("depth", [1, 2, 5, 16])
def test_f4_the_naive_way_finds_the_same_with_a_quadratic_number_of_products(depth: int) -> None:
    parts, values, delta = stack(depth)
    quick, slow = recursion(parts, values, delta), naive(parts, values, delta)
    steps = len(parts)
    assert quick.products == steps  # L − 1 between the parts, and one to the input
    assert slow.products == steps * (steps - 1) // 2 + 1
    for one, other in zip(quick.gradients, slow.gradients, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in one)
    assert np.array_equal(quick.input, slow.input)


def test_f4_costs_are_reported_for_every_depth() -> None:
    costs = cost_by_depth(8)
    assert [row["depth"] for row in costs] == [1, 2, 4, 8]
    assert all(row["naive_products"] >= row["recursion_products"] for row in costs)


@pytest.mark.parametrize(
    ("parts", "x"),
    [(worked_example.MLP, worked_example.MLP_INPUT), (worked_example.CONVNET, worked_example.CONVNET_INPUT)],
)
def test_f4_every_value_of_the_worked_tables_is_autograds(parts: list[Part], x: np.ndarray) -> None:
    outputs, leaves, source = torch_outputs(parts, x)
    nn.functional.cross_entropy(outputs, torch.tensor([worked_example.CLASS])).backward()
    wanted = [leaf.grad for own in leaves for leaf in own.values()] + [source.grad]
    expected = sorted(float(value) for tensor in wanted for value in tensor.flatten())
    rows = worked_example.worked(parts, x).rows
    assert sorted(row[3] for row in rows if str(row[1]).startswith("∂L")) == pytest.approx(expected, abs=1e-12)


def test_gradients_of_a_linear_stack_shrink_by_its_weight() -> None:
    """With weights c·I and no activation, the gradient at depth l of L is c^(L − l) times that at the end."""
    net = nn.Sequential(*(nn.Linear(4, 4, bias=False) for _ in range(5)))
    for layer in net:
        nn.init.eye_(layer.weight)
        layer.weight.data *= 0.5

    batch = Batch({"x": torch.randn(3, 4)}, torch.zeros(3), torch.arange(3), 3)
    sizes = list(gradient_sizes(net, lambda batch: net(batch.inputs["x"]).square().mean(), [batch]).values())
    assert [late / early for early, late in pairwise(sizes)] == pytest.approx([2.0] * 4, rel=1e-5)
    assert all(parameter.grad is None for parameter in net.parameters())


def test_networks_without_norms_and_shortcuts_have_none() -> None:
    found, note = variants(configured("gmlp_pico_p4_32", depth=2))
    assert list(found) == ["as it starts", "without norms", "without shortcuts", "without both"] and not note
    assert not any(isinstance(module, NORMS) for module in found["without norms"].modules())
    block, x = found["as it starts"].blocks[0], torch.randn(2, 64, 64)
    bare = found["without shortcuts"].blocks[0]
    assert isinstance(bare, Unshortened)
    torch.testing.assert_close(block(x) - x, bare(x))
    assert len(stations(found["without both"])) == len(stations(found["as it starts"]))


@pytest.mark.parametrize("name", ["resnet8_cifar", "vit_pico_p4_32"])
def test_every_variant_of_a_network_runs_and_is_differentiated(name: str) -> None:
    found, _ = variants(configured(name, img_size=(16, 16)))
    for network in found.values():
        outputs = network(torch.randn(2, 3, 16, 16))
        outputs.square().sum().backward()
        first = next(network.parameters())
        assert math.isfinite(float(first.grad.norm())) and float(first.grad.norm()) > 0


def test_what_a_family_does_not_have_is_said() -> None:
    assert "no norms and no shortcuts" in variants(configured("lenet5"))[1]
    found, note = variants(configured("mlp"))
    assert list(found) == ["as it starts", "with norms", "with shortcuts"] and not note
    assert "no shortcuts" in variants(configured("rcnn_96", width=8))[1]


def test_stations_are_in_order_and_not_inside_each_other() -> None:
    names = list(stations(weft.create_model("vit_pico_p4_32")))
    assert names == ["embed", *(f"blocks.{number}" for number in range(5)), "head"]
