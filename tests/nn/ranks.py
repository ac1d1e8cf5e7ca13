"""What each of several processes does in the tests of batch norm; a module, so that a new process can import it."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, distributed, nn

from weft.nn.norm import BatchNorm1d, BatchNorm2d

STEPS = 2


def inputs(shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """A batch far from zero mean and unit deviation, and a direction that makes a loss of the output."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(STEPS, *shape, generator=generator, dtype=torch.float64) * 3 + 2
    return x, torch.randn(STEPS, *shape, generator=generator, dtype=torch.float64)


def make(shape: tuple[int, ...]) -> nn.Module:
    norm = (BatchNorm2d if len(shape) == 4 else BatchNorm1d)(shape[1]).double()
    nn.init.normal_(norm.weight, generator=torch.Generator().manual_seed(1))
    nn.init.normal_(norm.bias, generator=torch.Generator().manual_seed(2))
    return norm


def run(norm: nn.Module, x: Tensor, direction: Tensor) -> dict[str, Tensor]:
    """A few training steps over (step, batch, …); outputs, gradients and running statistics."""
    x = x.clone().requires_grad_()
    outputs = torch.stack([norm(step) for step in x])
    (outputs * direction).sum().backward()
    gradients = {"x.grad": x.grad, "weight.grad": norm.weight.grad, "bias.grad": norm.bias.grad}
    return {"outputs": outputs.detach(), **gradients, **norm.state_dict()}  # type: ignore[dict-item]


def worker(rank: int, world: int, folder: str, cases: dict[str, tuple[tuple[int, ...], list[int]]]) -> None:
    """For each case the rank's slice of the batch, `cuts[rank]:cuts[rank + 1]`; results go to a file."""
    store = distributed.FileStore(str(Path(folder) / "store"), world)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=world)
    results = {}
    for name, (shape, cuts) in cases.items():
        mine = slice(cuts[rank], cuts[rank + 1])
        x, direction = inputs(shape)
        results[name] = run(make(shape), x[:, mine], direction[:, mine])
    torch.save(results, Path(folder) / f"{rank}.pt")
    distributed.destroy_process_group()
