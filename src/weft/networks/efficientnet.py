"""EfficientNet (Tan & Le 2019) and its Lite form, for processors without squeeze-and-excitation (Liu 2020).

An inverted bottleneck widens, filters each channel by itself, and narrows again (Sandler et al. 2018):

h = act(BN(W₁ x))              1×1, to `expansion` times the channels; left out where that is one
h = act(BN(k_c ∗ h_c))         depth-wise, 3×3 or 5×5, carrying the stride
h = h · σ(V₂ act(V₁ h̄))        squeeze-and-excitation, of a quarter of the block's inputs; Lite has none
y = x + BN(W₂ h)               1×1, without activation; the sum where the shapes agree

Compound scaling makes the sizes: from B0, depth times 1.2ᵠ, width times 1.1ᵠ and the image's side times 1.15ᵠ, of which
the published sizes are rounded values. Per block of E = expansion · C channels on n pixels 2·n·C·E + n·E·k²
multiply-adds: the depth-wise filter costs little, which the width is paid from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

import torch
from torch import Tensor, nn

from weft.networks.base.network import TrunkNetwork, make_head
from weft.networks.config import EfficientNetConfig
from weft.networks.measure.cost import Stage, head
from weft.networks.measure.receptive_field import Layer
from weft.networks.registry import Sizes
from weft.nn.activations import activation
from weft.nn.convolution import convolution
from weft.nn.initialisation import initialise
from weft.nn.noise import Dropout, DropPath, number_streams, rising_rates
from weft.nn.norm import BatchNorm2d
from weft.nn.squeeze import SqueezeExcite


@dataclass(frozen=True)
class BlockShape:
    """What tells one block from another: channels in and out, kernel and stride of the depth-wise filter."""

    inputs: int
    outputs: int
    kernel: int
    stride: int
    expansion: int

    @property
    def middle(self) -> int:
        return self.inputs * self.expansion

    def squeezed(self, share: float) -> int:
        """Width of squeeze-and-excitation, 0 for none."""
        return max(1, round(share * self.inputs)) if share else 0


def block_shapes(config: EfficientNetConfig) -> Iterator[list[BlockShape]]:
    """The blocks of each stage; the first of a stage has its stride and changes the width."""
    inputs = config.stem_width
    stages = zip(config.layers, config.widths, config.kernels, config.strides, config.expansions, strict=True)
    for count, width, kernel, stride, expansion in stages:
        first = BlockShape(inputs, width, kernel, stride, expansion)
        yield [first] + [BlockShape(width, width, kernel, 1, expansion)] * (count - 1)
        inputs = width


class _Block(nn.Module):
    """What the two forms of a block share: (batch, inputs, height, width) → (batch, outputs, …)."""

    def __init__(self, shape: BlockShape, config: EfficientNetConfig, drop_path: float) -> None:
        super().__init__()
        same, width = config.padding == "same", shape.squeezed(config.squeeze)
        self.conv_dw = convolution(
            shape.middle, shape.middle, shape.kernel, stride=shape.stride, groups=shape.middle, same=same
        )
        self.se = SqueezeExcite(shape.middle, width, config.act) if width else nn.Identity()
        self.act1 = activation(config.act, inplace=True)
        self.drop_path = DropPath(drop_path)
        self.residual = shape.stride == 1 and shape.inputs == shape.outputs

    def branch(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        y = self.branch(x)
        return x + self.drop_path(y) if self.residual else y


class SeparableBlock(_Block):
    """A block of expansion one: the depth-wise filter, then 1×1."""

    def __init__(self, shape: BlockShape, config: EfficientNetConfig, drop_path: float) -> None:
        super().__init__(shape, config, drop_path)
        self.bn1 = BatchNorm2d(shape.middle, eps=config.norm_eps)
        self.conv_pw = convolution(shape.middle, shape.outputs, 1)
        self.bn2 = BatchNorm2d(shape.outputs, eps=config.norm_eps)

    def branch(self, x: Tensor) -> Tensor:
        return self.bn2(self.conv_pw(self.se(self.act1(self.bn1(self.conv_dw(x))))))


class InvertedBottleneck(_Block):
    """1×1 wider, the depth-wise filter, 1×1 back."""

    def __init__(self, shape: BlockShape, config: EfficientNetConfig, drop_path: float) -> None:
        super().__init__(shape, config, drop_path)
        self.conv_pw = convolution(shape.inputs, shape.middle, 1)
        self.bn1 = BatchNorm2d(shape.middle, eps=config.norm_eps)
        self.bn2 = BatchNorm2d(shape.middle, eps=config.norm_eps)
        self.conv_pwl = convolution(shape.middle, shape.outputs, 1)
        self.bn3 = BatchNorm2d(shape.outputs, eps=config.norm_eps)
        self.act2 = activation(config.act, inplace=True)

    def branch(self, x: Tensor) -> Tensor:
        y = self.act2(self.bn2(self.conv_dw(self.act1(self.bn1(self.conv_pw(x))))))
        return self.bn3(self.conv_pwl(self.se(y)))


class EfficientNetTrunk(nn.Module):
    """Stem, stages of blocks and a last 1×1 convolution: images → (batch, head_width, height, width)."""

    def __init__(self, config: EfficientNetConfig) -> None:
        super().__init__()
        same, eps = config.padding == "same", config.norm_eps
        self.conv_stem = convolution(config.in_chans, config.stem_width, 3, stride=config.stem_stride, same=same)
        self.bn1 = BatchNorm2d(config.stem_width, eps=eps)
        self.act1 = activation(config.act, inplace=True)
        rates = iter(rising_rates(config.drop_path_rate, sum(config.layers)))
        self.blocks = nn.Sequential()
        for shapes in block_shapes(config):
            kinds = ((SeparableBlock if shape.expansion == 1 else InvertedBottleneck, shape) for shape in shapes)
            self.blocks.append(nn.Sequential(*(kind(shape, config, next(rates)) for kind, shape in kinds)))
        self.conv_head = convolution(config.widths[-1], config.head_width, 1)
        self.bn2 = BatchNorm2d(config.head_width, eps=eps)
        self.act2 = activation(config.act, inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        x = self.blocks(self.act1(self.bn1(self.conv_stem(x))))
        return self.act2(self.bn2(self.conv_head(x)))


class EfficientNet(TrunkNetwork):
    """Trunk → mean over positions → linear head."""

    config: EfficientNetConfig

    def __init__(self, config: EfficientNetConfig) -> None:
        super().__init__(config)
        self.trunk = EfficientNetTrunk(config)
        self.drop = Dropout(config.drop_rate)
        initialise(self, "he")
        for module in self.modules():
            if isinstance(module, nn.Conv2d) and module.groups > 1:  # each output goes to one channel, not to all
                nn.init.normal_(module.weight, std=(2 / module.weight[0].numel()) ** 0.5)
        self.head = make_head(config.head_width, config.num_classes)
        number_streams(self)

    @property
    def head_inputs(self) -> int:
        return self.config.head_width

    @staticmethod
    def cost(config: EfficientNetConfig) -> Iterator[Stage]:
        """Two numbers a channel for each norm; a stride of 2 halves the side, rounding up."""
        width, last = config.stem_width, config.head_width
        side = strided(config.img_size, config.stem_stride)
        weights = 9 * config.in_chans * width
        yield Stage("trunk.conv_stem", (width, *side), weights, weights * prod(side))
        yield Stage("trunk.bn1", (width, *side), 2 * width, 0)
        for number, shapes in enumerate(block_shapes(config)):
            parameters = macs = 0
            for shape in shapes:
                after = strided(side, shape.stride)
                more = block_cost(shape, config.squeeze, prod(side), prod(after))
                parameters, macs, side = parameters + more[0], macs + more[1], after
            yield Stage(f"trunk.blocks.{number}", (shapes[0].outputs, *side), parameters, macs)
        weights = config.widths[-1] * last
        yield Stage("trunk.conv_head", (last, *side), weights, weights * prod(side))
        yield Stage("trunk.bn2", (last, *side), 2 * last, 0)
        yield from head(last, config.num_classes)

    @staticmethod
    def field(config: EfficientNetConfig) -> Iterator[Layer]:
        """A block is as large as its filter; squeeze-and-excitation sees everything."""
        yield Layer("conv_stem", 3, config.stem_stride)
        for number, shapes in enumerate(block_shapes(config)):
            for index, shape in enumerate(shapes):
                kernel = None if config.squeeze else shape.kernel
                yield Layer(f"blocks.{number}.{index}", kernel, shape.stride)


def strided(side: tuple[int, int], stride: int) -> tuple[int, int]:
    return -(-side[0] // stride), -(-side[1] // stride)


def block_cost(shape: BlockShape, squeeze: float, before: int, after: int) -> tuple[int, int]:
    """Parameters and multiply-adds of a block, from `before` pixels to `after`."""
    widen = shape.inputs * shape.middle if shape.expansion > 1 else 0
    filters, narrow = shape.middle * shape.kernel**2, shape.middle * shape.outputs
    parameters = widen + filters + narrow + 2 * (shape.middle + shape.outputs + (shape.middle if widen else 0))
    macs = widen * before + (filters + narrow) * after
    if squeeze:
        excite = SqueezeExcite.cost(shape.middle, shape.squeezed(squeeze))
        parameters, macs = parameters + excite[0], macs + excite[1]
    return parameters, macs


B0 = EfficientNetConfig()
TENSORFLOW: dict[str, Any] = {"padding": "same", "norm_eps": 1e-3}  # what the published weights were trained with


def rounded(channels: float) -> int:
    """The nearest multiple of 8, or the next one where that would take away more than a tenth."""
    near = max(8, int(channels + 4) // 8 * 8)
    return near + 8 if near < 0.9 * channels else near


def scaled(width: float, depth: float, side: int, **more: Any) -> EfficientNetConfig:
    """B0 times a width and a depth; Lite keeps stem, head and the depth of its first and last stage."""
    lite = more.get("squeeze") == 0
    layers = [ceil(depth * count) for count in B0.layers]
    if lite:
        layers[0], layers[-1] = B0.layers[0], B0.layers[-1]
    ends = {} if lite else {"stem_width": rounded(32 * width), "head_width": rounded(1280 * width)}
    widths = tuple(rounded(width * channels) for channels in B0.widths)
    return B0.replaced(img_size=(side, side), layers=tuple(layers), widths=widths, **ends, **more)


def sizes() -> Sizes:
    """Scalings of the authors' code; `tf_` pads as TensorFlow does. The last two are for small images."""
    full = {0: (1.0, 1.0, 224), 1: (1.0, 1.1, 240), 2: (1.1, 1.2, 260), 3: (1.2, 1.4, 300)}
    full |= {4: (1.4, 1.8, 380), 5: (1.6, 2.2, 456), 6: (1.8, 2.6, 528), 7: (2.0, 3.1, 600)}
    lite = {0: (1.0, 1.0, 224), 1: (1.0, 1.1, 240), 2: (1.1, 1.2, 260), 3: (1.2, 1.4, 280), 4: (1.4, 1.8, 300)}
    plain: dict[str, Any] = {"squeeze": 0, "act": "relu6"}
    paddings: dict[str, dict[str, Any]] = {"": {}, "tf_": TENSORFLOW}
    for prefix, padding in paddings.items():
        for number, scaling in full.items():
            yield f"{prefix}efficientnet_b{number}", scaled(*scaling, **padding)
        for number, scaling in lite.items():
            yield f"{prefix}efficientnet_lite{number}", scaled(*scaling, **{**padding, **plain})
    small: dict[str, Any] = {"stem_stride": 1, "strides": (1, 1, 2, 2, 1, 2, 1), "num_classes": 10}
    yield "efficientnet_nano_32", scaled(0.5, 0.5, 32, **small)
    yield "efficientnet_lite_nano_32", scaled(0.5, 0.5, 32, **{**small, **plain})
