"""HaloNet (Vaswani et al. 2021): a ResNet in whose later blocks local self-attention takes the place of the 3×3.

h = act(BN(W₁ x))                          1×1 to the width
h = act(BN(k ∗ h)), or
h = act(BN(attention(h)))                  blocks of b×b pixels with a halo of h around them: nn/halo.py
y = act(BN(W₂ h) + shortcut(x))            1×1 to four times the width; 1×1 as the shortcut where the shape changes

Attention in windows is linear in the number of pixels, per pixel 2·w²·C multiply-adds with w = b + 2h. The published
H0…H7 were never released; the sizes are timm's, which attend where maps are small. The attention is also a mixer of
tokens, `mixer="halo"`.
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
from weft.networks.config import HaloNetConfig
from weft.networks.measure.cost import Stage, halved, head, linear
from weft.networks.measure.receptive_field import Layer
from weft.networks.registry import Sizes, register_mixer
from weft.nn.activations import activation
from weft.nn.blocks import Layout, MixerContext
from weft.nn.convolution import convolution
from weft.nn.halo import HaloAttention
from weft.nn.initialisation import initialise, lecun
from weft.nn.noise import Dropout, DropPath, number_streams, rising_rates
from weft.nn.norm import BatchNorm2d


def reach_of(block: int, halo: int) -> int:
    """A window that holds, wherever in its block a pixel lies, all that it sees: an upper bound."""
    return 2 * (block + halo) - 1


@register_mixer("halo")
class HaloMixer(nn.Module):
    """Blocked local attention over a grid of tokens, and a linear layer: (batch, tokens, channels) in and out.

    A grid that is no multiple of the block is filled up with zeros. For images alone.
    """

    block, halo = 4, 1
    reach = reach_of(block, halo)

    def __init__(self, layout: Layout, dim: int, heads: int) -> None:
        super().__init__()
        self.grid = layout.grid
        self.attention = HaloAttention(dim, heads, self.block, self.halo)
        self.out = nn.Linear(dim, dim)

    @classmethod
    def cost(cls, context: MixerContext) -> tuple[int, int]:
        filled = prod(-(-side // cls.block) * cls.block for side in context.grid)
        parameters, macs = HaloAttention.cost(context.dim, context.heads, cls.block, cls.halo, filled)
        return parameters + linear(context.dim, context.dim), macs + context.tokens * context.dim**2

    def forward(self, x: Tensor) -> Tensor:
        rows, columns = self.grid
        image = x.transpose(1, 2).unflatten(2, self.grid)
        y = self.attention(F.pad(image, (0, -columns % self.block, 0, -rows % self.block)))
        return self.out(y[:, :, :rows, :columns].flatten(2).transpose(1, 2))


class ConvNorm(nn.Sequential):
    """Convolution → batch norm → activation, if there is one."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, act: str = "identity") -> None:
        super().__init__()
        self.conv = convolution(inputs, outputs, kernel, stride=stride)
        self.bn = BatchNorm2d(outputs)
        self.act = activation(act, inplace=True)


@dataclass(frozen=True)
class BlockShape:
    """What tells one block from another; `heads` is 0 where it convolves."""

    inputs: int
    width: int
    stride: int
    heads: int

    @property
    def outputs(self) -> int:
        return 4 * self.width

    @property
    def projects(self) -> bool:
        return self.stride > 1 or self.inputs != self.outputs


def block_shapes(config: HaloNetConfig) -> Iterator[list[BlockShape]]:
    """The blocks of each stage; all stages but the first halve the side."""
    inputs = config.widths[0]
    for number, (kinds, width, heads) in enumerate(zip(config.stages, config.widths, config.heads, strict=True)):
        shapes = []
        for index, kind in enumerate(kinds):
            stride = 2 if number and not index else 1
            shapes.append(BlockShape(inputs, width, stride, heads if kind == "a" else 0))
            inputs = 4 * width
        yield shapes


class HaloBlock(nn.Module):
    """(batch, inputs, height, width) → (batch, outputs, …), as above."""

    def __init__(self, shape: BlockShape, config: HaloNetConfig, drop_path: float) -> None:
        super().__init__()
        width = shape.width
        self.shortcut = nn.Identity() if not shape.projects else ConvNorm(shape.inputs, shape.outputs, 1, shape.stride)
        self.conv1_1x1 = ConvNorm(shape.inputs, width, 1, act=config.act)
        if shape.heads:
            self.self_attn = HaloAttention(width, shape.heads, config.block, config.halo, shape.stride)
            self.post_attn = BatchNorm2d(width)
            self.post_act = activation(config.act, inplace=True)
        else:
            self.conv2_kxk = ConvNorm(width, width, 3, shape.stride, act=config.act)
        self.attends = shape.heads > 0
        self.conv3_1x1 = ConvNorm(width, shape.outputs, 1)
        self.drop_path = DropPath(drop_path)
        self.act = activation(config.act, inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1_1x1(x)
        y = self.post_act(self.post_attn(self.self_attn(y))) if self.attends else self.conv2_kxk(y)
        return self.act(self.drop_path(self.conv3_1x1(y)) + self.shortcut(x))


class HaloNetTrunk(nn.Module):
    """A stem of three 3×3 convolutions, and stages: images → (batch, channels, height, width)."""

    def __init__(self, config: HaloNetConfig) -> None:
        super().__init__()
        large, inputs = config.stem == "imagenet", config.in_chans
        self.stem = nn.Sequential()
        for number, width in enumerate(config.stem_widths):
            stride = 2 if large and not number else 1
            self.stem.add_module(f"conv{number + 1}", ConvNorm(inputs, width, 3, stride, act=config.act))
            inputs = width
        if large:
            self.stem.add_module("pool", nn.MaxPool2d(3, stride=2, padding=1))
        rates = iter(rising_rates(config.drop_path_rate, sum(map(len, config.stages))))
        self.stages = nn.Sequential(
            *(
                nn.Sequential(*(HaloBlock(shape, config, next(rates)) for shape in shapes))
                for shapes in block_shapes(config)
            )
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.stages(self.stem(x.contiguous(memory_format=torch.channels_last)))


class HaloNet(TrunkNetwork):
    """Trunk → mean over positions → linear head."""

    config: HaloNetConfig
    any_side = False

    def __init__(self, config: HaloNetConfig) -> None:
        super().__init__(config)
        self.trunk = HaloNetTrunk(config)
        self.drop = Dropout(config.drop_rate)
        initialise(self, "he")
        for module in self.modules():
            if isinstance(module, HaloAttention):  # no rectifier follows a query or a key
                lecun(module.q.weight)
                lecun(module.kv.weight)
            if isinstance(module, HaloBlock) and config.zero_init_last:
                nn.init.zeros_(module.conv3_1x1.bn.weight)
        self.head = make_head(self.head_inputs, config.num_classes)
        number_streams(self)

    @property
    def head_inputs(self) -> int:
        return 4 * self.config.widths[-1]

    @staticmethod
    def cost(config: HaloNetConfig) -> Iterator[Stage]:
        """Norms have two numbers a channel; a stride of 2 halves the side, rounding up."""
        large, inputs, parameters, macs = config.stem == "imagenet", config.in_chans, 0, 0
        side = halved(config.img_size) if large else config.img_size
        for width in config.stem_widths:
            parameters += 9 * inputs * width + 2 * width
            macs += 9 * inputs * width * prod(side)
            inputs = width
        side = halved(side) if large else side
        yield Stage("trunk.stem", (inputs, *side), parameters, macs)
        for number, shapes in enumerate(block_shapes(config)):
            parameters = macs = 0
            for shape in shapes:
                after = halved(side) if shape.stride > 1 else side
                more = block_cost(shape, config, prod(side), prod(after))
                parameters, macs, side = parameters + more[0], macs + more[1], after
            yield Stage(f"trunk.stages.{number}", (shapes[0].outputs, *side), parameters, macs)
        yield from head(4 * config.widths[-1], config.num_classes)

    @staticmethod
    def field(config: HaloNetConfig) -> Iterator[Layer]:
        """A block of attention reaches over its window, from wherever in it."""
        large = config.stem == "imagenet"
        for number in range(len(config.stem_widths)):
            yield Layer(f"stem.conv{number + 1}", 3, 2 if large and not number else 1)
        if large:
            yield Layer("stem.pool", 3, 2)
        for number, shapes in enumerate(block_shapes(config)):
            for index, shape in enumerate(shapes):
                kernel = reach_of(config.block, config.halo) if shape.heads else 3
                yield Layer(f"stages.{number}.{index}", kernel, shape.stride)


def block_cost(shape: BlockShape, config: HaloNetConfig, before: int, after: int) -> tuple[int, int]:
    """Parameters and multiply-adds of a block, from `before` pixels to `after`."""
    width, first, last = shape.width, shape.inputs * shape.width, shape.width * shape.outputs
    parameters = first + last + 2 * (2 * width + shape.outputs)
    macs = first * before + last * after
    if shape.heads:
        middle = HaloAttention.cost(width, shape.heads, config.block, config.halo, before, shape.stride)
    else:
        middle = 9 * width**2, 9 * width**2 * after
    parameters, macs = parameters + middle[0], macs + middle[1]
    if shape.projects:
        parameters += shape.inputs * shape.outputs + 2 * shape.outputs
        macs += shape.inputs * shape.outputs * after
    return parameters, macs


def sizes() -> Sizes:
    """timm's sizes, and one for small images."""
    yield "halonet26t", HaloNetConfig(stages=("cc", "cc", "ca", "aa"), halo=2)
    deep: dict[str, Any] = {"stages": ("ccc", "ccca", "cacaca", "cac"), "heads": (8, 4, 8, 8)}
    yield "halonet50ts", HaloNetConfig(**deep, halo=3, act="silu")
    small: dict[str, Any] = {"stem": "cifar", "img_size": (32, 32), "num_classes": 10, "block": 4, "halo": 1}
    yield (
        "halonet_nano_32",
        HaloNetConfig(stages=("c", "c", "ca", "a"), widths=(16, 32, 64, 96), heads=(4,) * 4, **small),
    )
