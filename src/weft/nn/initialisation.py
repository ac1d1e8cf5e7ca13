"""How weights start, one function a school; parts with a rule of their own have a method `initialise`.

Biases start at zero and norms at one everywhere but in an LSTM, which keeps torch's uniform ±1/√hidden. The head of
a pre-norm image network starts at zero, as in the published ViT and Mixer code, so that training begins from uniform
predictions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.overrides import TorchFunctionMode


def xavier(weight: Tensor) -> None:
    """Glorot & Bengio 2010, uniform: the published ViT code (and timm's gMLP)."""
    nn.init.xavier_uniform_(weight)


def lecun(weight: Tensor) -> None:
    """Truncated normal of variance 1 / fan-in: flax's default, and so the published Mixer code."""
    fan_in = weight[0].numel()
    # 0.8796 is the deviation of a standard normal cut at two deviations.
    std = fan_in**-0.5 / 0.87962566103423978
    nn.init.trunc_normal_(weight, std=std, a=-2 * std, b=2 * std)


def bert(weight: Tensor) -> None:
    """Truncated normal of deviation 0.02 (Devlin et al. 2018)."""
    nn.init.trunc_normal_(weight, std=0.02, a=-0.04, b=0.04)


def he(weight: Tensor) -> None:
    """He et al. 2015: variance 2 / fan-in for linear layers, 2 / fan-out for convolutions, as in the ResNets."""
    nn.init.kaiming_normal_(weight, mode="fan_in" if weight.ndim == 2 else "fan_out", nonlinearity="relu")


SCHOOLS: dict[str, Callable[[Tensor], None]] = {"xavier": xavier, "lecun": lecun, "bert": bert, "he": he}


def initialise(network: nn.Module, school: str) -> None:
    """Set every parameter below `network`: its linear and convolution layers after `school`."""
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d):
            SCHOOLS[school](module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.trunc_normal_(module.weight, std=0.02, a=-0.04, b=0.04)
        elif callable(own := getattr(module, "initialise", None)) and module is not network:
            own()


# ---- Random numbers of one thread alone: inside `seeded(seed)` all that is drawn on the CPU depends on the seed only.


class seeded(TorchFunctionMode):
    """Draw from a generator that starts at `seed`. Modes of this kind belong to the thread that entered them."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = Generator().manual_seed(seed)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if takes_generator(func) and kwargs.get("generator") is None and on_cpu(args, kwargs):
            kwargs = {**kwargs, "generator": self.generator}
        return func(*args, **kwargs)


class undrawn(TorchFunctionMode):
    """Draw nothing: the meta device has no place for it, and torch would load its compiler, for seconds, to say so."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        filled = args[0] if args else kwargs.get("tensor")  # which is how the initialisers are called
        draws = getattr(func, "__name__", "").endswith("_") and takes_generator(func)
        return filled if draws and isinstance(filled, Tensor) and filled.is_meta else func(*args, **kwargs)


@cache
def takes_generator(func: Any) -> bool:
    """Whether a function draws: torch's own by what the operation of its name takes, the initialisers by their own."""
    if getattr(func, "__module__", None) == torch.nn.init.__name__:
        return "generator" in inspect.signature(func).parameters
    operation = getattr(torch.ops.aten, getattr(func, "__name__", ""), None)
    forms = [getattr(operation, name) for name in operation.overloads()] if operation is not None else []
    return any(argument.name == "generator" for form in forms for argument in form._schema.arguments)


def on_cpu(args: Any, kwargs: Any) -> bool:
    """Whether a function's result will lie on the CPU; the meta device has nothing to draw."""
    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
    device = tensors[0].device if tensors else torch.device(kwargs.get("device") or torch.get_default_device())
    return device.type == "cpu"
