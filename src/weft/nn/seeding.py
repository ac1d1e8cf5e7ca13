"""Random numbers of one thread alone: inside `seeded(seed)` all that is drawn on the CPU depends on the seed only.

torch has one generator for the whole process, and `manual_seed` takes it away from everybody: from the user's own
draws, and from a thread that builds another network at the same time. Here each draw of this thread is handed a
generator of its own, and torch's is not touched. The numbers are those that `manual_seed` would have given.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import torch
from torch import Generator, Tensor
from torch.overrides import TorchFunctionMode


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
