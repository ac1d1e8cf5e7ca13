"""BiT, Big Transfer (Kolesnikov et al. 2019): a wide pre-activation ResNet without batch statistics.

z = relu(GN(x))                                 group norm: mean and deviation over 32 groups of channels (Wu & He 2018)
y = x + W₃ relu(GN(W₂ ∗ relu(GN(W₁ z))))        1×1, 3×3 with the stride, 1×1 to four times the width
                                                (He et al. 2016, "v2"); a 1×1 projection of z where the shape changes

The filters are standardised (nn/standardised.py). Neither depends on the batch, so few images a device and other images
after transfer change nothing, which is what it is for. "R50x3" is ResNet-50 with three times the channels.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd, prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weft.networks.base.network import TrunkNetwork, make_head
from weft.networks.config import BiTConfig
from weft.networks.measure.cost import Stage, halved, head
from weft.networks.measure.receptive_field import Layer
from weft.networks.registry import Sizes
from weft.nn.initialisation import initialise
from weft.nn.noise import Dropout, DropPath, number_streams, rising_rates
from weft.nn.standardised import StdConv2d

GROUPS = 32


class NormReLU(nn.GroupNorm):
    """relu(GN(x)) in 32 groups of channels, or as many of them as divide the channels."""

    def __init__(self, channels: int) -> None:
        super().__init__(gcd(GROUPS, channels), channels)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(super().forward(x), inplace=True)


@dataclass(frozen=True)
class BlockShape:
    """What tells one block from another: channels in, between and out, and the stride of the 3×3 convolution."""

    inputs: int
    width: int
    stride: int
    projects: bool

    @property
    def outputs(self) -> int:
        return 4 * self.width


def block_shapes(config: BiTConfig) -> Iterator[list[BlockShape]]:
    """The blocks of each stage; the first of a stage projects, and in all stages but the first halves the side."""
    inputs = config.widths[0]
    for number, (count, width) in enumerate(zip(config.layers, config.widths, strict=True)):
        first = BlockShape(inputs, width, 2 if number else 1, projects=True)
        yield [first] + [BlockShape(4 * width, width, 1, projects=False)] * (count - 1)
        inputs = 4 * width


class Projection(nn.Module):
    """The shortcut where the shape changes: 1×1, every second pixel."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv = StdConv2d(inputs, outputs, 1, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x)


class PreActBottleneck(nn.Module):
    """(batch, inputs, height, width) → (batch, outputs, …), as above."""

    def __init__(self, shape: BlockShape, drop_path: float) -> None:
        super().__init__()
        self.downsample = Projection(shape.inputs, shape.outputs, shape.stride) if shape.projects else None
        self.norm1 = NormReLU(shape.inputs)
        self.conv1 = StdConv2d(shape.inputs, shape.width, 1)
        self.norm2 = NormReLU(shape.width)
        self.conv2 = StdConv2d(shape.width, shape.width, 3, stride=shape.stride)
        self.norm3 = NormReLU(shape.width)
        self.conv3 = StdConv2d(shape.width, shape.outputs, 1)
        self.drop_path = DropPath(drop_path)

    def forward(self, x: Tensor) -> Tensor:
        z = self.norm1(x)
        shortcut = x if self.downsample is None else self.downsample(z)
        y = self.conv3(self.norm3(self.conv2(self.norm2(self.conv1(z)))))
        return self.drop_path(y) + shortcut


class BiTTrunk(nn.Module):
    """Stem, stages and the norm after them: images → (batch, channels, height, width)."""

    def __init__(self, config: BiTConfig) -> None:
        super().__init__()
        large = config.stem == "imagenet"
        self.stem = nn.Sequential()
        self.stem.add_module(
            "conv", StdConv2d(config.in_chans, config.widths[0], 7 if large else 3, stride=2 if large else 1)
        )
        if large:  # zeros around, not minus infinity as torch's own padding: before a norm, values may be negative
            self.stem.add_module("pad", nn.ZeroPad2d(1))
            self.stem.add_module("pool", nn.MaxPool2d(3, stride=2))
        rates = iter(rising_rates(config.drop_path_rate, sum(config.layers)))
        self.stages = nn.Sequential()
        for shapes in block_shapes(config):
            blocks = nn.Sequential(*(PreActBottleneck(shape, next(rates)) for shape in shapes))
            self.stages.append(nn.Sequential(OrderedDict(blocks=blocks)))
        self.norm = NormReLU(4 * config.widths[-1])

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x.contiguous(memory_format=torch.channels_last))
        return self.norm(self.stages(x))


class BiT(TrunkNetwork):
    """Trunk → mean over positions → linear head."""

    config: BiTConfig

    def __init__(self, config: BiTConfig) -> None:
        super().__init__(config)
        self.trunk = BiTTrunk(config)
        self.drop = Dropout(config.drop_rate)
        initialise(self, "lecun")
        self.head = make_head(self.head_inputs, config.num_classes, zero=True)  # as the authors start it
        number_streams(self)

    def fresh_head(self) -> nn.Module:
        return make_head(self.head_inputs, self.config.num_classes, zero=True)

    @property
    def head_inputs(self) -> int:
        return 4 * self.config.widths[-1]

    @staticmethod
    def cost(config: BiTConfig) -> Iterator[Stage]:
        """Norms have two numbers a channel; a stride of 2 halves the side, rounding up."""
        large, first = config.stem == "imagenet", config.widths[0]
        side = halved(config.img_size) if large else config.img_size
        weights = (49 if large else 9) * config.in_chans * first
        macs = weights * prod(side)
        side = halved(side) if large else side
        yield Stage("trunk.stem", (first, *side), weights, macs)
        for number, shapes in enumerate(block_shapes(config)):
            parameters = macs = 0
            for shape in shapes:
                after = halved(side) if shape.stride > 1 else side
                more = block_cost(shape, prod(side), prod(after))
                parameters, macs, side = parameters + more[0], macs + more[1], after
            yield Stage(f"trunk.stages.{number}", (shapes[0].outputs, *side), parameters, macs)
        channels = 4 * config.widths[-1]
        yield Stage("trunk.norm", (channels, *side), 2 * channels, 0)
        yield from head(channels, config.num_classes)

    @staticmethod
    def field(config: BiTConfig) -> Iterator[Layer]:
        """Group norm takes its statistics over the whole image, so the first block sees everything."""
        if config.stem == "imagenet":
            yield from (Layer("stem.conv", 7, 2), Layer("stem.pool", 3, 2))
        else:
            yield Layer("stem.conv", 3)
        for number, shapes in enumerate(block_shapes(config)):
            for index, shape in enumerate(shapes):
                yield Layer(f"stages.{number}.blocks.{index}", None, shape.stride)


def block_cost(shape: BlockShape, before: int, after: int) -> tuple[int, int]:
    """Parameters and multiply-adds of a block, from `before` pixels to `after`."""
    first, rest = shape.inputs * shape.width, 9 * shape.width**2 + shape.width * shape.outputs
    parameters, macs = first + rest + 2 * (shape.inputs + 2 * shape.width), first * before + rest * after
    if shape.projects:
        parameters += shape.inputs * shape.outputs
        macs += shape.inputs * shape.outputs * after
    return parameters, macs


def sizes() -> Sizes:
    """The published sizes, depth times width, and one for small images."""
    depths = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
    for depth, factor in ((50, 1), (50, 3), (101, 1), (101, 3), (152, 2), (152, 4)):
        widths = tuple(factor * width for width in (64, 128, 256, 512))
        yield f"resnetv2_{depth}x{factor}_bit", BiTConfig(layers=depths[depth], widths=widths)
    small: dict[str, Any] = {"stem": "cifar", "img_size": (32, 32), "num_classes": 10}
    yield "bit_nano_32", BiTConfig(layers=(1, 1, 1, 1), widths=(32, 48, 64, 96), **small)
