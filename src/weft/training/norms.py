"""Norms of gradients, weights and updates, a layer at a time: where training is stuck or about to blow up."""

from __future__ import annotations

import torch
from torch import Tensor, nn

Norms = dict[str, dict[str, float]]  # kind of norm -> layer -> value


def layer_of(parameter: str) -> str:
    """The layer that a parameter belongs to: `blocks.3.mlp.fc1.weight` is in `blocks.3.mlp.fc1`."""
    return parameter.rpartition(".")[0] or parameter


def by_layer(tensors: dict[str, Tensor]) -> dict[str, float]:
    """Norm of each layer's tensors together, to five digits: there are thousands of them in a run's journal."""
    if not tensors:
        return {}
    norms = torch.stack([whole_norm(norm) for norm in torch._foreach_norm(list(tensors.values()))])
    squares: dict[str, float] = {}
    for name, norm in zip(tensors, norms.double().tolist(), strict=True):
        squares[layer_of(name)] = squares.get(layer_of(name), 0.0) + norm * norm
    return {layer: float(f"{square**0.5:.5g}") for layer, square in squares.items()}


def whole_norm(norm: Tensor) -> Tensor:
    """The norm over all ranks of a sharded tensor's norm; others as they are."""
    full: Tensor = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
    return full


class NormProbe:
    """Measures one step: made before the update, asked after it."""

    def __init__(self, net: nn.Module) -> None:
        self._parameters = {name: p for name, p in net.named_parameters() if p.grad is not None}
        gradients = {name: p.grad for name, p in self._parameters.items() if p.grad is not None}
        self._gradient = by_layer(gradients)
        self._before = {name: p.detach().clone() for name, p in self._parameters.items()}

    def after(self) -> Norms:
        """Norms by kind and layer."""
        now = {name: p.detach() for name, p in self._parameters.items()}
        moved = torch._foreach_sub(list(now.values()), list(self._before.values()))
        return {
            "gradient_norm": self._gradient,
            "weight_norm": by_layer(now),
            "update_norm": by_layer(dict(zip(now, moved, strict=True))),
        }
