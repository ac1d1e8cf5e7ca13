"""What there is to say of a network before it is trained: stages, parameters, multiply-adds, field, memory.

All of it on the meta device: shapes are followed, nothing is allocated, so the largest networks take no memory.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from weft.networks.base.network import Network
from weft.networks.config import ImageConfig, MLPConfig, NetworkConfig, TextConfig, TextTokensConfig
from weft.networks.measure.cost import Stage, stages
from weft.networks.measure.receptive_field import Field, receptive_field
from weft.networks.registry import build
from weft.nn.activations import kept_for_backward

BYTES = 4  # of a float32
COPIES = 4  # while training with Adam: weight, gradient and two moments


@dataclass(frozen=True)
class Row:
    """A stage by formula, and as torch counts it (None where torch has no formula for one of its operations)."""

    stage: Stage
    counted_parameters: int
    counted_macs: int | None


@dataclass(frozen=True)
class Description:
    """Everything that `weft describe` prints; `activations` are bytes kept for backward, per example."""

    config: NetworkConfig
    input_shape: tuple[int, ...]
    rows: list[Row]
    fields: list[Field]
    weights: int
    training_state: int
    activations: int

    @property
    def parameters(self) -> int:
        return sum(row.counted_parameters for row in self.rows)

    @property
    def macs(self) -> int:
        """By formula."""
        return sum(row.stage.macs * row.stage.count for row in self.rows)

    @property
    def counted_macs(self) -> int | None:
        counts = [row.counted_macs for row in self.rows]
        return None if None in counts else sum(count for count in counts if count is not None)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "parameters": self.parameters, "macs": self.macs, "counted_macs": self.counted_macs}


def describe(config: NetworkConfig) -> Description:
    """Follow one example through the network of `config` on the meta device."""
    passed = stages(config)  # a network from outside that cannot do its work is refused here
    with torch.device("meta"):
        network = build(config)
    example = example_input(config)
    counts = count_macs(network, example)
    rows = [
        Row(
            stage, count_parameters(network, stage.module), None if counts is None else macs_below(counts, stage.module)
        )
        for stage in passed
    ]
    weights = BYTES * sum(row.counted_parameters for row in rows)
    return Description(
        config=config,
        input_shape=tuple(example.shape[1:]),
        rows=rows,
        fields=receptive_field(config),
        weights=weights,
        training_state=COPIES * weights,
        activations=activation_bytes(network, example),
    )


def example_input(config: NetworkConfig) -> Tensor:
    """A batch of one, on the meta device."""
    if isinstance(config, TextTokensConfig) and config.encoder is not None:
        return torch.zeros(1, config.max_length, config.encoder.dim, device="meta")
    if isinstance(config, TextConfig):
        return torch.zeros(1, config.max_length, dtype=torch.int64, device="meta")
    if isinstance(config, MLPConfig) and config.img_size is None:
        return torch.zeros(1, config.in_features, device="meta")
    assert isinstance(config, ImageConfig | MLPConfig) and config.img_size is not None
    return torch.zeros(1, config.in_chans, *config.img_size, device="meta")


def count_parameters(network: Network, module: str) -> int:
    """Parameters below a module, or of a bare parameter such as the class token."""
    return sum(p.numel() for name, p in network.named_parameters() if name == module or name.startswith(module + "."))


def count_macs(network: Network, example: Tensor) -> dict[str, int] | None:
    """Multiply-adds by torch's counter for every module; it counts multiplications and additions, so halve.

    None for the LSTM, for which torch has no formula.
    """
    if any(isinstance(module, torch.nn.LSTM) for module in network.modules()):
        return None
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        network.eval()(example)
    return {
        name.partition(".")[2]: sum(operations.values()) // 2 for name, operations in counter.get_flop_counts().items()
    }


def macs_below(counts: dict[str, int], module: str) -> int:
    """Multiply-adds of a module; a list of modules is not itself called, so it is the sum of its members."""
    if module in counts:
        return counts[module]
    return sum(count for path, count in counts.items() if re.fullmatch(rf"{re.escape(module)}\.\d+", path))


def activation_bytes(network: Network, example: Tensor) -> int:
    """Bytes that autograd keeps between forward and backward for one example, weights left out.

    On the meta device attention forms its maps, which the fused kernels do not: with attention, an upper bound.
    """
    with kept_for_backward(apart=network.parameters()) as kept:
        network.train()(torch.cat([example, example]))  # batch norm refuses to train on one example
    return sum(kept.values()) // 2
