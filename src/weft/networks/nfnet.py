"""NFNet (Brock et al. 2021): a ResNet without normalisation layers.

Block ℓ of a stage adds to the variance of its input what its branch has, α², and the first one resets it; so the
expected variance is known beforehand and the branch sees a variance of one:

z = β γ act(x), β = 1/√Var(x)      Var = 1 after a stage's first block plus α² for each block since
y = x + α s · 2·SE(f(z))           s a learned number that starts at zero; a projection of z where the shape changes
f = 1×1 → γ act → 3×3 in groups → γ act → 3×3 in groups → γ act → 1×1

γ makes act keep a variance of one, the filters are standardised (nn/standardised.py), and the 2 undoes the mean of
squeeze-and-excitation's sigmoid. These constants are multiplied into the filters that read z and γ act, and into the
gate, not into the maps: the same numbers for less work. Trained with adaptive gradient clipping: `--clip-mode agc`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weft.networks.base.network import TrunkNetwork, make_head
from weft.networks.config import NFNetConfig
from weft.networks.measure.cost import Stage, halved, head
from weft.networks.measure.receptive_field import Layer
from weft.networks.registry import Sizes
from weft.nn.initialisation import initialise
from weft.nn.noise import Dropout, DropPath, number_streams, rising_rates
from weft.nn.squeeze import SqueezeExcite
from weft.nn.standardised import ScaledStdConv2d

GAMMA = 1.7015043497085571  # 1/√Var(GELU(z)) for z of variance one, as in the authors' code
GATE_GAIN = 2.0  # the mean of a sigmoid is a half


class ScaledGELU(nn.GELU):
    """γ GELU(x), of variance one for an input of variance one."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * GAMMA


@dataclass(frozen=True)
class BlockShape:
    """What tells one block from another; `variance` is what its input is expected to have."""

    inputs: int
    outputs: int
    middle: int
    groups: int
    stride: int
    variance: float

    @property
    def projects(self) -> bool:
        """Whether the shape changes, so that the shortcut is a projection."""
        return self.stride > 1 or self.inputs != self.outputs

    @property
    def squeezed(self) -> int:
        """Width of squeeze-and-excitation: half the channels, a multiple of 8."""
        return max(8, (self.outputs // 2 + 4) // 8 * 8)


def block_shapes(config: NFNetConfig) -> Iterator[list[BlockShape]]:
    """The blocks of each stage; all stages but the first halve the side."""
    inputs, variance = config.stem_width, 1.0
    for number, (count, width) in enumerate(zip(config.layers, config.widths, strict=True)):
        groups = max(1, width // 2 // config.group_size)
        shapes = []
        for index in range(count):
            stride = 2 if number and not index else 1
            middle = width // 2 // groups * groups
            shapes.append(BlockShape(inputs, width, middle, groups, stride, variance))
            variance = (1.0 if index == 0 else variance) + config.alpha**2
            inputs = width
        yield shapes


class Downsample(nn.Module):
    """The shortcut where the shape changes: mean over 2×2 pixels, then 1×1, of the input times a `factor`."""

    def __init__(self, inputs: int, outputs: int, stride: int, factor: float) -> None:
        super().__init__()
        self.stride = stride
        self.conv = ScaledStdConv2d(inputs, outputs, 1, factor=factor)

    def forward(self, x: Tensor) -> Tensor:
        if self.stride > 1:
            x = F.avg_pool2d(x, 2, self.stride, ceil_mode=True, count_include_pad=False)
        return self.conv(x)


class NFBlock(nn.Module):
    """(batch, inputs, height, width) → (batch, outputs, …), as above."""

    def __init__(self, shape: BlockShape, alpha: float, drop_path: float) -> None:
        super().__init__()
        self.gain, middle, groups = GATE_GAIN * alpha, shape.middle, shape.groups
        scale = GAMMA * shape.variance**-0.5  # βγ
        self.downsample = Downsample(shape.inputs, shape.outputs, shape.stride, scale) if shape.projects else None
        self.act1, self.act2, self.act2b, self.act3 = (nn.GELU() for _ in range(4))
        self.conv1 = ScaledStdConv2d(shape.inputs, middle, 1, factor=scale)
        self.conv2 = ScaledStdConv2d(middle, middle, 3, stride=shape.stride, groups=groups, factor=GAMMA)
        self.conv2b = ScaledStdConv2d(middle, middle, 3, groups=groups, factor=GAMMA)
        self.conv3 = ScaledStdConv2d(middle, shape.outputs, 1, factor=GAMMA)
        self.attn_last = SqueezeExcite(shape.outputs, shape.squeezed)
        self.drop_path = DropPath(drop_path)
        self.skipinit_gain = nn.Parameter(torch.zeros(()))

    def branch(self, z: Tensor) -> Tensor:
        y = self.conv2b(self.act2b(self.conv2(self.act2(self.conv1(z)))))
        return self.attn_last(self.conv3(self.act3(y)), self.gain * self.skipinit_gain)

    def forward(self, x: Tensor) -> Tensor:
        z = self.act1(x)
        shortcut = x if self.downsample is None else self.downsample(z)
        return shortcut + self.drop_path(self.branch(z))


class NFNetTrunk(nn.Module):
    """A stem of four 3×3 convolutions, stages and a last 1×1 convolution: images → (batch, head_width, …)."""

    def __init__(self, config: NFNetConfig) -> None:
        super().__init__()
        self.stem = nn.Sequential()
        inputs = config.in_chans
        for number, (width, stride) in enumerate(zip(config.stem_widths, config.stem_strides, strict=True)):
            if number:
                self.stem.add_module(f"act{number + 1}", nn.GELU())
            factor = GAMMA if number else 1.0
            self.stem.add_module(f"conv{number + 1}", ScaledStdConv2d(inputs, width, 3, stride=stride, factor=factor))
            inputs = width
        rates = iter(rising_rates(config.drop_path_rate, sum(config.layers)))
        self.stages = nn.Sequential(
            *(
                nn.Sequential(*(NFBlock(shape, config.alpha, next(rates)) for shape in shapes))
                for shapes in block_shapes(config)
            )
        )
        self.final_conv = ScaledStdConv2d(config.widths[-1], config.head_width, 1)
        self.final_act = ScaledGELU()

    def forward(self, x: Tensor) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        return self.final_act(self.final_conv(self.stages(self.stem(x))))


class NFNet(TrunkNetwork):
    """Trunk → mean over positions → linear head."""

    config: NFNetConfig

    def __init__(self, config: NFNetConfig) -> None:
        super().__init__(config)
        self.trunk = NFNetTrunk(config)
        self.drop = Dropout(config.drop_rate)
        initialise(self, "lecun")
        self.head = make_head(config.head_width, config.num_classes)
        number_streams(self)

    @property
    def head_inputs(self) -> int:
        return self.config.head_width

    @staticmethod
    def cost(config: NFNetConfig) -> Iterator[Stage]:
        """Each convolution has a bias and a gain a channel."""
        side, inputs, parameters, macs = config.img_size, config.in_chans, 0, 0
        for width, stride in zip(config.stem_widths, config.stem_strides, strict=True):
            side = halved(side) if stride > 1 else side
            parameters += 9 * inputs * width + 2 * width
            macs += 9 * inputs * width * prod(side)
            inputs = width
        yield Stage("trunk.stem", (inputs, *side), parameters, macs)
        for number, shapes in enumerate(block_shapes(config)):
            parameters = macs = 0
            for shape in shapes:
                after = halved(side) if shape.stride > 1 else side
                more = block_cost(shape, prod(side), prod(after))
                parameters, macs, side = parameters + more[0], macs + more[1], after
            yield Stage(f"trunk.stages.{number}", (shapes[0].outputs, *side), parameters, macs)
        weights, last = config.widths[-1] * config.head_width, config.head_width
        yield Stage("trunk.final_conv", (last, *side), weights + 2 * last, weights * prod(side))
        yield from head(last, config.num_classes)

    @staticmethod
    def field(config: NFNetConfig) -> Iterator[Layer]:
        """Squeeze-and-excitation sees everything, so the first block does."""
        for number, stride in enumerate(config.stem_strides):
            yield Layer(f"stem.conv{number + 1}", 3, stride)
        for number, shapes in enumerate(block_shapes(config)):
            yield from (Layer(f"stages.{number}.{index}", None, shape.stride) for index, shape in enumerate(shapes))


def block_cost(shape: BlockShape, before: int, after: int) -> tuple[int, int]:
    """Parameters and multiply-adds of a block, from `before` pixels to `after`."""
    first, last = shape.inputs * shape.middle, shape.middle * shape.outputs
    kernels = 2 * 9 * shape.middle * shape.middle // shape.groups
    parameters = first + kernels + last + 2 * (3 * shape.middle + shape.outputs) + 1
    macs = first * before + (kernels + last) * after
    if shape.projects:
        parameters += shape.inputs * shape.outputs + 2 * shape.outputs
        macs += shape.inputs * shape.outputs * after
    excite = SqueezeExcite.cost(shape.outputs, shape.squeezed)
    return parameters + excite[0], macs + excite[1]


def sizes() -> Sizes:
    """Table 1 of the paper, at the sides of training: F0 with all depths times 1 to 7. The last is for small images."""
    sides = (192, 224, 256, 320, 384, 416, 448)
    for number, side in enumerate(sides):
        layers = tuple(count * (number + 1) for count in (1, 2, 6, 3))
        yield f"dm_nfnet_f{number}", NFNetConfig(layers=layers, img_size=(side, side))
    small: dict[str, Any] = {"stem": "cifar", "img_size": (32, 32), "num_classes": 10, "group_size": 16}
    thin: dict[str, Any] = {"layers": (1, 1, 2, 1), "widths": (64, 128, 192, 192), "stem_width": 32, "head_width": 384}
    yield "nfnet_nano_32", NFNetConfig(**small, **thin)
