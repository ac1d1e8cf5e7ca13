"""F2: every activation is its formula, and every derivative is what autograd finds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.networks.config import Act
from weft.nn.activations import ACTIVATIONS, activation

CLOSED_FORMS: dict[str, Callable[[float], float]] = {
    "identity": lambda x: x,
    "step": lambda x: 1.0 if x >= 0 else 0.0,
    "logistic": lambda x: 1 / (1 + math.exp(-x)),
    "tanh": lambda x: (math.exp(2 * x) - 1) / (math.exp(2 * x) + 1),
    "arctan": math.atan,
    "relu": lambda x: max(x, 0.0),
    "relu6": lambda x: min(max(x, 0.0), 6.0),
    "prelu": lambda x: x if x > 0 else 0.25 * x,
    "elu": lambda x: x if x > 0 else math.exp(x) - 1,
    "softplus": lambda x: math.log(1 + math.exp(x)),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "gelu": lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}

away_from_zero = st.floats(0.001, 12) | st.floats(-12, -0.001)  # the kinks of step, ReLU and PReLU are at 0


def test_the_closed_forms_cover_every_activation_of_f2() -> None:
    assert set(ACTIVATIONS) == set(CLOSED_FORMS) == set(get_args(Act))


@pytest.mark.parametrize("name", ACTIVATIONS)
@settings(deadline=None, max_examples=25)
@given(x=st.floats(-12, 12))
def test_function_and_module_are_the_closed_form(name: str, x: float) -> None:
    """F2: the function by itself and the module in a network both compute the formula of the primer."""
    point = torch.tensor([x], dtype=torch.float64)
    expected = pytest.approx(CLOSED_FORMS[name](x), rel=1e-9, abs=1e-9)
    assert ACTIVATIONS[name].function(point).item() == expected
    assert activation(name).double()(point).item() == expected


@pytest.mark.parametrize("name", ACTIVATIONS)
@settings(deadline=None, max_examples=25)
@given(x=away_from_zero)
def test_derivative_is_what_autograd_finds(name: str, x: float) -> None:
    """F2: the derivative written out equals autograd's in float64; the step's is zero away from zero."""
    point = torch.tensor([x], dtype=torch.float64, requires_grad=True)
    value = ACTIVATIONS[name].function(point)
    found = torch.autograd.grad(value, point)[0].item() if value.requires_grad else 0.0
    assert ACTIVATIONS[name].derivative(point.detach()).item() == pytest.approx(found, rel=1e-9, abs=1e-12)


def test_the_two_gelus_are_different_functions() -> None:
    """The tanh form and the erf form are close, but not the same: a checkpoint needs its own."""
    x = torch.linspace(-4, 4, 801, dtype=torch.float64)
    gap = (ACTIVATIONS["gelu"].function(x) - ACTIVATIONS["gelu_tanh"].function(x)).abs().max().item()
    assert 1e-4 < gap < 1e-3


def test_the_slope_of_prelu_is_trained_and_starts_at_a_quarter() -> None:
    """F2: PReLU is the only activation with a parameter."""
    trained = {name: [p.item() for p in activation(name).parameters()] for name in ACTIVATIONS}
    assert {name: slope for name, slope in trained.items() if slope} == {"prelu": [0.25]}


def test_nothing_below_a_step_can_learn() -> None:
    """F2: the step has no gradient, and asking for one fails loudly instead of training nothing."""
    weight = torch.ones(3, requires_grad=True)
    assert not ACTIVATIONS["step"].function(weight).requires_grad


def test_each_call_gives_a_module_of_its_own() -> None:
    assert activation("prelu") is not activation("prelu")
