"""One process or many behind one small interface, `Distributed`; the only module that knows Lightning Fabric.

`MultiProcess` is Fabric under torchrun: DDP, or FSDP2 through ModelParallelStrategy, on CPUs (gloo) or GPUs (nccl).
`SingleProcess` is one process on one CPU; it needs nothing of Fabric, whose import takes longer than torch's own (3.2 s
against 1.3 s, most of it torchmetrics and dynamo).
"""

from __future__ import annotations

import logging
import os
import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from weft.errors import WeftError
from weft.training.config import Precision
from weft.training.run.narrow import autocast

AUTOCAST = {"float32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


class Distributed(Protocol):
    """The processes that share a run."""

    rank: int
    world: int
    device: torch.device
    precision: Precision
    """number format of forward passes"""

    def place(self, net: nn.Module) -> nn.Module:
        """Move the network to this process's device and wrap it for its strategy."""

    def use(self, precision: Precision) -> None:
        """Number format of forward passes from now on."""

    def autocast(self) -> AbstractContextManager[Any]:
        """Context of a forward pass."""

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of `loss`, a share that is to be summed over ranks."""

    def accumulating(self, net: nn.Module, more: bool) -> AbstractContextManager[Any]:
        """Context of a micro-batch; ranks exchange gradients only when no `more` follow in this step."""

    def sum(self, values: Tensor) -> Tensor:
        """Element-wise sum over ranks."""

    def concatenate(self, rows: Tensor) -> Tensor:
        """Rows (n, …) of all ranks, in the order of ranks; n may differ."""

    def anyone(self, flag: bool) -> bool:
        """Whether the flag is set on any rank."""

    def share(self, value: Any) -> Any:
        """Rank 0's value (anything JSON could hold), on every rank."""


class SingleProcess:
    """One process on one CPU."""

    rank, world = 0, 1
    device = torch.device("cpu")

    def __init__(self) -> None:
        self.precision: Precision = "float32"

    def place(self, net: nn.Module) -> nn.Module:
        return net

    def use(self, precision: Precision) -> None:
        self.precision = precision

    def autocast(self) -> AbstractContextManager[Any]:
        return autocast("cpu", AUTOCAST[self.precision])

    def backward(self, loss: Tensor) -> None:
        loss.backward()

    def accumulating(self, net: nn.Module, more: bool) -> AbstractContextManager[Any]:
        return nullcontext()

    def sum(self, values: Tensor) -> Tensor:
        return values

    def concatenate(self, rows: Tensor) -> Tensor:
        return rows

    def anyone(self, flag: bool) -> bool:
        return flag

    def share(self, value: Any) -> Any:
        return value


class MultiProcess:
    """Several processes, or a GPU, through Lightning Fabric."""

    def __init__(self, device: str, strategy: str) -> None:
        from lightning_fabric import Fabric

        logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # it greets from every process
        self.world = int(os.environ.get("WORLD_SIZE", "1"))
        local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        self._fabric = Fabric(
            accelerator=device,
            devices=local,
            num_nodes=max(self.world // local, 1),
            strategy=self._strategy(strategy),
        )
        self._fabric.launch()
        self.rank, self.device = self._fabric.global_rank, self._fabric.device
        if self._fabric.world_size != self.world:  # other launchers degrade to one process in silence
            raise WeftError(f"started {self.world} processes, but {self._fabric.world_size} found each other")
        self._sharded = strategy == "fsdp"
        self.precision: Precision = "float32"

    def _strategy(self, name: str) -> Any:
        from lightning_fabric.strategies.ddp import DDPStrategy
        from lightning_fabric.strategies.model_parallel import ModelParallelStrategy

        if name == "fsdp":
            return ModelParallelStrategy(shard, data_parallel_size=self.world, tensor_parallel_size=1)
        if self.world == 1:
            return "auto"
        return DDPStrategy(broadcast_buffers=False)  # batch norm reduces its own statistics over ranks

    def place(self, net: nn.Module) -> nn.Module:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated")  # its successor is torch 2.13's
            placed: nn.Module = self._fabric.setup_module(net)
        if self._sharded and not all(is_sharded(parameter) for parameter in net.parameters()):
            raise WeftError("--strategy fsdp left parameters whole; use --strategy ddp for this network")
        return placed

    def use(self, precision: Precision) -> None:
        self.precision = precision

    def autocast(self) -> AbstractContextManager[Any]:
        return autocast(self.device.type, AUTOCAST[self.precision])

    def backward(self, loss: Tensor) -> None:
        # DDP and FSDP average gradients over ranks; the objective's shares are to be added up
        self._fabric.backward(loss * self.world)

    def accumulating(self, net: nn.Module, more: bool) -> AbstractContextManager[Any]:
        if self.world == 1:
            return nullcontext()
        context: AbstractContextManager[Any] = self._fabric.no_backward_sync(net, enabled=more)  # type: ignore[arg-type]
        return context

    def sum(self, values: Tensor) -> Tensor:
        return self._reduce(values.clone())

    def _reduce(self, values: Tensor) -> Tensor:
        if self.world > 1:
            torch.distributed.all_reduce(values)
        return values

    def concatenate(self, rows: Tensor) -> Tensor:
        if self.world == 1:
            return rows
        counts = torch.zeros(self.world, dtype=torch.int64, device=rows.device)
        counts[self.rank] = len(rows)
        self._reduce(counts)
        padded = rows.new_zeros(int(counts.max()), *rows.shape[1:])
        padded[: len(rows)] = rows
        parts = [torch.empty_like(padded) for _ in range(self.world)]
        torch.distributed.all_gather(parts, padded)
        return torch.cat([part[:count] for part, count in zip(parts, counts.tolist(), strict=True)])

    def anyone(self, flag: bool) -> bool:
        return bool(self._reduce(torch.tensor([int(flag)], device=self.device)).item())

    def share(self, value: Any) -> Any:
        return self._fabric.broadcast(value)


def shard(net: nn.Module, mesh: Any) -> nn.Module:
    """Cut parameters over the ranks with FSDP2: block by block, then what is left."""
    from torch.distributed.fsdp import fully_shard

    for container in net.modules():
        if isinstance(container, nn.ModuleList):
            for block in container:
                fully_shard(block, mesh=mesh["data_parallel"])
    fully_shard(net, mesh=mesh["data_parallel"])
    return net


def is_sharded(tensor: Tensor) -> bool:
    """Whether this rank holds a part of the tensor only (a DTensor)."""
    return hasattr(tensor, "full_tensor")


def whole(tensor: Tensor) -> Tensor:
    """The full tensor on the CPU; a collective call where it is sharded."""
    full: Tensor = getattr(tensor, "full_tensor", lambda: tensor)()
    return full.detach().to("cpu", copy=True).contiguous()


@torch.no_grad()
def fill(target: Tensor, content: Tensor) -> None:
    """Copy a full tensor into `target`, which may be sharded."""
    if is_sharded(target):
        from torch.distributed.tensor import distribute_tensor

        content = distribute_tensor(content.to(target.device), target.device_mesh, target.placements)  # type: ignore[attr-defined]
    target.copy_(content)


def join(device: str, strategy: str) -> Distributed:
    """The team that the environment (torchrun) and the configuration call for."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise WeftError("no CUDA device was found; use --device cpu")
    if world == 1 and device == "cpu":
        if strategy != "auto":
            raise WeftError(f"--strategy {strategy} needs several processes; add --processes 2 or start with torchrun")
        return SingleProcess()
    return MultiProcess(device, strategy)


# ---- Loss scaling for fp16, whose smallest number is 6e-8: the loss is multiplied, its gradients divided again

START, INTERVAL = 2.0**16, 2000  # GradScaler's


@dataclass
class Scaling:
    """The factor on the loss; part of a checkpoint. Off where numbers are wide enough (float32, bf16)."""

    on: bool = False
    factor: float = 1.0
    streak: int = 0
    """steps since the factor was last changed"""

    def undo(self, net: nn.Module) -> None:
        """Divide the gradients by the factor."""
        if self.on:
            gradients = [p.grad for p in net.parameters() if p.grad is not None]
            torch._foreach_mul_(gradients, 1 / self.factor)

    def overflowed(self, finite: bool) -> bool:
        """Take note of a gradient; True when it is to be left out, False when it is sound or scaling is no remedy."""
        if not self.on:
            return False
        self.streak = self.streak + 1 if finite else 0
        if not finite:
            self.factor /= 2
        elif self.streak == INTERVAL:
            self.factor, self.streak = 2 * self.factor, 0
        return not finite and self.factor >= 1


def scaling_for(precision: Precision) -> Scaling:
    """The scaling that a run in this number format starts with."""
    return Scaling(on=True, factor=START) if precision == "fp16" else Scaling()
