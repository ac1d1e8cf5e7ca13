"""Forward passes in a narrow number format: torch's autocast, but for what oneDNN gets wrong in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


def autocast(device: str, kind: torch.dtype | None) -> AbstractContextManager[Any]:
    """Context of a forward pass whose products and convolutions are of this `kind`; none: float32."""
    if kind is None:
        return nullcontext()
    return _on_cpu(kind) if device == "cpu" else torch.autocast(device, kind)


@contextmanager
def _on_cpu(kind: torch.dtype) -> Iterator[None]:
    with torch.autocast("cpu", kind), WideSmallMaps():
        yield


class WideSmallMaps(TorchFunctionMode):
    """Convolutions with a stride on maps that are smaller than their kernel or stride stay in float32.

    With maps narrower than the stride oneDNN 3.12 leaves part of the kernel's gradient unwritten in bf16, on processors
    with AVX-512 for it but without AMX: what was in memory before shows through.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is not torch.conv2d or not small(*args, **kwargs):
            return func(*args, **kwargs)
        wide: list[Any] = [value.float() if isinstance(value, Tensor) else value for value in args]
        with torch.autocast("cpu", enabled=False):
            return func(*wide, **kwargs)


def small(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | tuple[int, ...] = 1, *_: Any, **__: Any
) -> bool:
    """Whether a convolution has a stride and a map (…, rows, columns) smaller than it or the kernel."""
    step = stride if isinstance(stride, int) else max(stride)
    return step > 1 and min(x.shape[-2:]) < max(step, *weight.shape[-2:])
