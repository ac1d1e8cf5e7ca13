"""The theoretical receptive field: how many input pixels, or words, can reach one value of the last feature map.

The primer's ERF_now = RF_now + ERF_before − 1 holds for stride 1. With strides and dilation, a layer of kernel k,
dilation d and stride s behind layers whose strides multiply to j has r ← r + (k − 1)·d·j and j ← j·s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weft.networks.config import (
    FilterNetConfig,
    ForeignConfig,
    ImageTokensConfig,
    LeNetConfig,
    NetworkConfig,
    RCNNConfig,
    ResNetConfig,
    TextConvConfig,
    TextTokensConfig,
    TokenConfig,
)


@dataclass(frozen=True)
class Layer:
    """A layer as the field sees it. `kernel=None`: it sees everything (attention, a token MLP, a dense layer)."""

    name: str
    kernel: int | None
    stride: int = 1
    dilation: int = 1


@dataclass(frozen=True)
class Field:
    """After the layer `name`: side of the field in input pixels (None: all of them) and stride between neighbours."""

    name: str
    side: int | None
    stride: int


def grow(layers: Iterable[Layer]) -> list[Field]:
    """The field after each layer of a chain."""
    side: int | None = 1
    stride, fields = 1, []
    for layer in layers:
        side = None if side is None or layer.kernel is None else side + (layer.kernel - 1) * layer.dilation * stride
        stride *= layer.stride
        fields.append(Field(layer.name, side, stride))
    return fields


def receptive_field(config: NetworkConfig) -> list[Field]:
    """The field after each layer on a network's longest path, input to last feature map; none if it is foreign."""
    return grow(layers_of(config))


def layers_of(config: NetworkConfig) -> Iterator[Layer]:
    """The layers on a network's longest path, as the field sees them."""
    if isinstance(config, ImageTokensConfig):
        if config.hybrid:
            yield from _trunk(config.stem, config.stem_layers, "basic")
        else:
            yield Layer("embed", config.patch_size, config.patch_size)
        yield from _blocks(config)
    elif isinstance(config, TextTokensConfig):
        yield from _blocks(config)
    elif isinstance(config, ResNetConfig):
        yield from _trunk(config.stem, config.layers, config.block)
    elif isinstance(config, LeNetConfig):
        for number in range(len(config.channels)):
            yield from (Layer(f"conv{number + 1}", config.kernel), Layer(f"pool{number + 1}", 2, 2))
    elif isinstance(config, FilterNetConfig):
        yield from (Layer(f"conv{number + 1}", config.kernel) for number in range(len(config.hidden) + 1))
    elif isinstance(config, RCNNConfig):
        yield from _recurrent(config.steps)
    elif isinstance(config, TextConvConfig):
        yield Layer("convolutions", max(config.kernels))
    elif not isinstance(config, ForeignConfig):  # of which nothing is known
        from weft.networks.registry import network_class

        yield from network_class(config.family).field(config)


def _blocks(config: TokenConfig) -> Iterator[Layer]:
    kernel = config.mixer_reach()
    yield from (Layer(f"blocks.{number}", kernel) for number in range(config.depth))


def _trunk(stem: str, layers: tuple[int, ...], block: str) -> Iterator[Layer]:
    if stem == "imagenet":
        yield from (Layer("conv1", 7, 2), Layer("pool", 3, 2))
    else:
        yield Layer("conv1", 3)
    for number, count in enumerate(layers):
        for index in range(count):
            stride = 2 if number and not index else 1
            name = f"layer{number + 1}.{index}"
            kernels = ((3, stride), (3, 1)) if block == "basic" else ((1, 1), (3, stride), (1, 1))
            yield from (Layer(f"{name}.conv{i + 1}", k, s) for i, (k, s) in enumerate(kernels))


def _recurrent(steps: int) -> Iterator[Layer]:
    """Unrolled, a recurrent layer is steps + 1 convolutions deep."""
    yield from (Layer("stem", 5), Layer("stem.pool", 3, 2))
    for stage in ("first", "second"):
        if stage == "second":
            yield Layer("pool", 3, 2)
        for layer in range(2):
            yield from (Layer(f"{stage}.{layer}.step{step}", 3) for step in range(steps + 1))
