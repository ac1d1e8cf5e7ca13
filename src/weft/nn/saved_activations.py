"""How many bytes autograd keeps between a forward pass and its backward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor


def saved_bytes(forward: Callable[[], Tensor], apart: Iterable[Tensor] = ()) -> int:
    """Bytes kept for the backward pass of `forward()`, those of the tensors `apart` (weights) left out.

    Works on the meta device too, where storages have a size and no address.
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
        result = forward()
    del result
    return sum(kept.values())
