"""Gradients cut down before a step: all of them by their common norm, or each unit's by the norm of its weights.

Adaptive clipping (Brock et al. 2021, §4) is what lets networks without norms train at large batches: the gradient G_i
of unit i, a row of a matrix or a filter, is scaled to at most λ ‖W_i‖, as a step should change a weight by no more than
a share of it. ‖W_i‖ counts as at least 1e-3, so that weights which start at zero can move. The head is left alone.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

ClipMode = Literal["norm", "agc"]
USUAL_LIMIT: dict[ClipMode, float] = {"norm": 1.0, "agc": 0.01}
SMALLEST_WEIGHT, SMALLEST_GRADIENT = 1e-3, 1e-6


def clip_gradients(network: nn.Module, mode: ClipMode = "norm", limit: float | None = None) -> Tensor:
    """Clip the gradients of a network and give their common norm as it was before; a limit of 0 clips nothing."""
    limit = USUAL_LIMIT[mode] if limit is None else limit
    if mode == "norm" or not limit:
        return nn.utils.clip_grad_norm_(network.parameters(), limit or math.inf, foreach=True)
    norm = nn.utils.clip_grad_norm_(network.parameters(), math.inf, foreach=True)
    head: Any = getattr(network, "head", None)
    spared = {id(parameter) for parameter in head.parameters()} if isinstance(head, nn.Module) else set()
    for parameter in network.parameters():
        if parameter.grad is not None and id(parameter) not in spared:
            clip_units(parameter, parameter.grad, limit)
    return norm


@torch.no_grad()
def clip_units(weight: Tensor, gradient: Tensor, limit: float) -> None:
    """Scale the gradient of each unit, in place, to at most `limit` times the norm of the unit's weights."""
    most = unit_norms(weight).clamp_(min=SMALLEST_WEIGHT).mul_(limit)
    norms = unit_norms(gradient)
    gradient.mul_(torch.where(norms < most, 1.0, most / norms.clamp(min=SMALLEST_GRADIENT)))


def unit_norms(x: Tensor) -> Tensor:
    """The norm of each row or filter, with axes kept; of a vector as a whole."""
    return x.norm() if x.ndim <= 1 else torch.linalg.vector_norm(x, dim=tuple(range(1, x.ndim)), keepdim=True)
