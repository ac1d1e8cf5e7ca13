"""Predicted times on machines that are not here: every operation takes what its products or its memory traffic take.

The roofline (Williams et al. 2009), operation by operation: seconds = max(2 · multiply-adds / peak, bytes / bandwidth),
and never less than a launch. Operations, shapes and bytes are those of a real forward and backward pass, followed on
the meta device; each reads its inputs and writes its outputs once, as eager kernels do. It is a bound from below: real
kernels reach 50 to 80 % of either roof, so a step takes longer than this, rarely shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from weft.networks.config import NetworkConfig
from weft.networks.measure.description import example_input
from weft.networks.registry import build


@dataclass(frozen=True)
class Device:
    """The roofs of a device, by the vendor's data sheet: dense products, no sparsity."""

    name: str
    products: float
    """multiplications and additions a second in matrix products, in the narrow format that training uses there"""
    bandwidth: float
    """bytes a second"""
    launch: float
    """seconds from one small operation to the next in eager mode"""
    width: int
    """bytes of a number in that format"""


DEVICES = (
    Device("RTX 4090, bf16", 165e12, 1.008e12, 5e-6, 2),  # NVIDIA Ada whitepaper: fp32 accumulate
    Device("A100 80 GB, bf16", 312e12, 2.039e12, 5e-6, 2),  # NVIDIA A100 data sheet, SXM
    Device("H100 SXM, bf16", 989e12, 3.35e12, 5e-6, 2),  # NVIDIA H100 data sheet, SXM
)


@dataclass
class Work:
    """What an operation, or all of them, need: additions and multiplications in products, numbers moved."""

    flops: int
    numbers: int

    def seconds(self, device: Device) -> float:
        return max(self.flops / device.products, self.numbers * device.width / device.bandwidth, device.launch)


@dataclass
class Trace(TorchDispatchMode):
    """Notes every operation that computes."""

    operations: list[Work] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if function.is_view or moves_nothing(function):
            return result
        counter = flop_registry.get(function.overloadpacket)
        flops = 0 if counter is None else int(counter(*args, **(kwargs or {}), out_val=result))
        self.operations.append(Work(flops, numbers((args, kwargs)) + numbers(result)))
        return result


def moves_nothing(function: Any) -> bool:
    """Whether an operation only makes room, or another name for what is there."""
    return function.overloadpacket.__name__ in ("empty", "empty_like", "empty_strided", "detach", "_unsafe_view")


def numbers(values: Any) -> int:
    """Elements of the tensors among some values."""
    return sum(value.numel() for value in tree_leaves(values) if isinstance(value, Tensor))


def follow(work: Callable[[], object]) -> list[Work]:
    """The operations of some work, which must be on the meta device."""
    with Trace() as trace:
        work()
    return trace.operations


def forward_operations(config: NetworkConfig, batch: int) -> list[Work]:
    """Of a forward pass without gradients."""
    network, inputs = on_meta(config, batch)
    with torch.no_grad():
        return follow(lambda: network.eval()(inputs))


def step_operations(config: NetworkConfig, batch: int) -> list[Work]:
    """Of a training step: forward, loss, backward, and AdamW, which reads and writes each number a few times."""
    network, inputs = on_meta(config, batch)
    targets = torch.zeros(batch, dtype=torch.int64, device="meta")

    def step() -> None:
        F.cross_entropy(network.train()(inputs), targets).backward()

    weights = sum(p.numel() for p in network.parameters())
    return [*follow(step), Work(0, ADAMW * weights)]


ADAMW = 7  # reads weight, gradient and two moments, writes three of them


def on_meta(config: NetworkConfig, batch: int) -> tuple[Any, Tensor]:
    """The network and a batch, of which nothing is allocated."""
    with torch.device("meta"):
        network = build(config)
    example = example_input(config)
    return network, torch.zeros(batch, *example.shape[1:], dtype=example.dtype, device="meta")


def predicted(operations: Iterable[Work], device: Device) -> float:
    """Seconds of operations one after the other."""
    return sum(work.seconds(device) for work in operations)
