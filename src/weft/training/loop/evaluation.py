"""Outputs of a network for every example of a split, once each, whatever the number of processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from weft.training.run.distributed import Distributed, SingleProcess, fill


@torch.no_grad()
def outputs_of(net: nn.Module, batches: Iterable[Any], team: Distributed | None = None) -> tuple[Tensor, Tensor]:
    """Outputs (n, K) and targets (n,) of all examples, on the CPU, the same on every rank."""
    team = team or SingleProcess()
    net.eval()
    outputs, targets = [], []
    for batch in batches:
        inputs = {name: value.to(team.device) for name, value in batch.inputs.items()}
        with team.autocast():
            local = net(**inputs).float()
        outputs.append(team.concatenate(local).cpu())
        targets.append(team.concatenate(batch.targets.to(team.device)).cpu())
    return torch.cat(outputs), torch.cat(targets)


@contextmanager
def weights_of(net: nn.Module, weights: dict[str, Tensor] | None) -> Iterator[None]:
    """Lend `net` other weights (a moving average, the best so far); None leaves its own."""
    if weights is None:
        yield
        return
    own = {name: value.clone() for name, value in net.state_dict().items()}
    load(net, weights)
    try:
        yield
    finally:
        load(net, own)


def load(net: nn.Module, weights: dict[str, Tensor]) -> None:
    """Copy weights by name into `net`."""
    for name, target in net.state_dict().items():
        fill(target, weights[name])
