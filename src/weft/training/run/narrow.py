"""Forward passes in a narrow number format: torch's autocast, but for what CPUs get wrong or compute slowly in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode


def autocast(device: str, kind: torch.dtype | None) -> AbstractContextManager[Any]:
    """Context of a forward pass whose products and convolutions are of this `kind`; none: float32."""
    if kind is None:
        return nullcontext()
    return _on_cpu(kind) if device == "cpu" else torch.autocast(device, kind)


@contextmanager
def _on_cpu(kind: torch.dtype) -> Iterator[None]:
    with torch.autocast("cpu", kind), StaysWide():
        yield


class StaysWide(TorchFunctionMode):
    """Attention, and convolutions with a stride on maps smaller than they are, stay in float32.

    torch's attention takes longer in bf16 on CPUs without AMX: a step of ViT P4 C64 is 0.75 times as fast as in
    float32, and 1.3 times with attention in float32. With maps narrower than the stride, oneDNN 3.12 leaves part of
    the kernel's gradient unwritten in bf16 on such CPUs: what was in memory before shows through.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        wide = func is F.scaled_dot_product_attention or (func is torch.conv2d and small(*args, **kwargs))
        if not wide:
            return func(*args, **kwargs)
        with torch.autocast("cpu", enabled=False):
            return func(*map(widened, args), **{name: widened(value) for name, value in kwargs.items()})


def widened(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.is_floating_point() else value


def small(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | tuple[int, ...] = 1, *_: Any, **__: Any
) -> bool:
    """Whether a convolution has a stride and a map (…, rows, columns) smaller than it or the kernel."""
    step = stride if isinstance(stride, int) else max(stride)
    return step > 1 and min(x.shape[-2:]) < max(step, *weight.shape[-2:])
