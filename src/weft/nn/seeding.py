"""Random numbers of one thread alone: inside `seeded(seed)` all that is drawn on the CPU depends on the seed only.

torch has one generator for the whole process, and `manual_seed` takes it away from everybody: from the user's own
draws, and from a thread that builds another network at the same time. Here each draw of this thread is handed a
generator of its own on its way to the kernel, and torch's is not touched. The numbers are those that `manual_seed`
would have given.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Generator, Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class seeded(TorchDispatchMode):
    """Draw from a generator that starts at `seed`. Modes of this kind belong to the thread that entered them."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        drawing = with_generator(func)
        if drawing is None or kwargs.get("generator") is not None or not on_cpu(args, kwargs):
            return func(*args, **kwargs)
        return drawing(*args, **{**kwargs, "generator": self.generator})


@cache
def with_generator(func: Any) -> Any:
    """The form of an operation that takes a generator; None if it draws nothing.

    Of those that draw, only dropout and recurrent layers have no such form, and to build a network none of them is run.
    """
    if torch.Tag.nondeterministic_seeded not in func.tags:
        return None
    forms = [getattr(func.overloadpacket, name) for name in func.overloadpacket.overloads()]
    wanted = {**arguments(func), "generator": "Optional[Generator]"}
    return next((form for form in [func, *forms] if arguments(form) == wanted), None)


def arguments(func: Any) -> dict[str, str]:
    """The names and types of an operation's arguments."""
    return {argument.name: str(argument.type) for argument in func._schema.arguments}


def on_cpu(args: Any, kwargs: Any) -> bool:
    """Whether an operation's result will lie on the CPU; the meta device has nothing to draw."""
    tensors = [value for value in args if isinstance(value, Tensor)]
    device = tensors[0].device if tensors else torch.device(kwargs.get("device") or "cpu")
    return device.type == "cpu"
