"""Activations by name, each with its derivative written out.

`activation("gelu")` is a module for use in a network; `ACTIVATIONS["gelu"]` is the function beside its derivative,
which the tests hold against autograd and the lenses draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Function = Callable[[Tensor], Tensor]

SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
CUBIC = 0.044715  # Hendrycks & Gimpel 2016, the coefficient of the tanh form of GELU
PRELU_SLOPE = 0.25  # He et al. 2015, the slope that PReLU starts from


@dataclass(frozen=True)
class Activation:
    """An elementwise function, its derivative, and the module to put into a network."""

    function: Function
    derivative: Function
    module: Callable[[], nn.Module]


class Elementwise(nn.Module):
    """A function without parameters as a module, printed by its name."""

    def __init__(self, name: str, function: Function) -> None:
        super().__init__()
        self.name, self.function = name, function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)

    def extra_repr(self) -> str:
        return self.name


def binary_step(x: Tensor) -> Tensor:
    """1 where x ≥ 0, else 0. Its derivative is 0 away from 0, so nothing below it can be trained."""
    return (x >= 0).to(x.dtype)


def logistic_derivative(x: Tensor) -> Tensor:
    y = torch.sigmoid(x)
    return y * (1 - y)


def gelu_tanh_derivative(x: Tensor) -> Tensor:
    """d/dx of 0.5x(1 + tanh u), u = √(2/π)(x + 0.044715x³)."""
    tanh = torch.tanh(SQRT_2_OVER_PI * (x + CUBIC * x**3))
    slope = SQRT_2_OVER_PI * (1 + 3 * CUBIC * x**2)
    return 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh**2) * slope


def gelu_erf_derivative(x: Tensor) -> Tensor:
    """d/dx of xΦ(x) = Φ(x) + xφ(x), with Φ and φ the standard normal distribution and its density."""
    return 0.5 * (1 + torch.erf(x / math.sqrt(2))) + x * torch.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)


def silu_derivative(x: Tensor) -> Tensor:
    """d/dx of xσ(x) = σ(x)(1 + x(1 − σ(x)))."""
    y = torch.sigmoid(x)
    return y * (1 + x * (1 - y))


def _plain(name: str, function: Function, derivative: Function) -> Activation:
    return Activation(function, derivative, lambda: Elementwise(name, function))


ACTIVATIONS: dict[str, Activation] = {
    "identity": Activation(lambda x: x, torch.ones_like, nn.Identity),
    "step": _plain("step", binary_step, torch.zeros_like),
    "logistic": Activation(torch.sigmoid, logistic_derivative, nn.Sigmoid),
    "tanh": Activation(torch.tanh, lambda x: 1 - torch.tanh(x) ** 2, nn.Tanh),
    "arctan": _plain("arctan", torch.arctan, lambda x: 1 / (1 + x**2)),
    "relu": Activation(F.relu, lambda x: (x > 0).to(x.dtype), nn.ReLU),
    "relu6": Activation(F.relu6, lambda x: ((x > 0) & (x < 6)).to(x.dtype), nn.ReLU6),
    "prelu": Activation(
        lambda x: torch.where(x > 0, x, PRELU_SLOPE * x),
        lambda x: torch.where(x > 0, torch.ones_like(x), torch.full_like(x, PRELU_SLOPE)),
        lambda: nn.PReLU(init=PRELU_SLOPE),
    ),
    "elu": Activation(F.elu, lambda x: torch.where(x > 0, torch.ones_like(x), torch.exp(x)), nn.ELU),
    "softplus": Activation(F.softplus, torch.sigmoid, nn.Softplus),
    "silu": Activation(F.silu, silu_derivative, nn.SiLU),
    "gelu": Activation(F.gelu, gelu_erf_derivative, nn.GELU),
    "gelu_tanh": Activation(
        lambda x: F.gelu(x, approximate="tanh"), gelu_tanh_derivative, lambda: nn.GELU(approximate="tanh")
    ),
}


def activation(name: str, *, inplace: bool = False) -> nn.Module:
    """A fresh module computing the activation called `name`; `inplace` overwrites its input, where that can be."""
    module = ACTIVATIONS[name].module()
    if inplace and hasattr(module, "inplace"):
        module.inplace = True  # type: ignore[assignment]
    return module


@contextmanager
def kept_for_backward(apart: Iterable[Tensor] = ()) -> Iterator[dict[int, int]]:
    """Fills a dictionary with what is kept for the backward pass of all that is computed inside: storage -> bytes.

    Those of the tensors `apart` (weights) are left out. Works on the meta device too, where storages have a size and no
    address.
    """
    own = {tensor.untyped_storage()._cdata for tensor in apart}
    kept: dict[int, int] = {}
    alive: list[torch.UntypedStorage] = []  # a storage that is freed might lend its identity to the next

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = storage.nbytes()
            alive.append(storage)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield kept
