"""ResNet (He et al. 2015): ResNet-18…152 for large images, and the CIFAR ResNets with option A's shortcuts.

Activations are kept in channels-last order, in which the convolutions and norms of a CPU or a GPU are faster.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weft.networks.base.network import TrunkNetwork, make_head
from weft.networks.config import ResNetConfig
from weft.networks.registry import Sizes
from weft.nn.initialisation import initialise
from weft.nn.noise import Dropout, number_streams
from weft.nn.norm import BatchNorm2d


class PaddedShortcut(nn.Module):
    """Option A of He et al., §4.2: take every second pixel and pad the new channels with zeros. No parameters."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.before = (outputs - inputs) // 2
        self.after = outputs - inputs - self.before

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.before, self.after))


def shortcut(inputs: int, outputs: int, stride: int, padded: bool) -> nn.Module | None:
    """None where shapes agree; otherwise zero padding (option A) or a 1×1 convolution with norm (option B)."""
    if stride == 1 and inputs == outputs:
        return None
    if padded:
        return PaddedShortcut(inputs, outputs, stride)
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), BatchNorm2d(outputs))


class BasicBlock(nn.Module):
    """Two 3×3 convolutions: relu(x + bn(conv(relu(bn(conv(x))))))."""

    expansion = 1

    def __init__(self, inputs: int, planes: int, stride: int = 1, *, padded: bool = False) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, planes, 3, stride=stride, padding=1, bias=False)
        self.bn1 = BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = BatchNorm2d(planes)
        self.downsample = shortcut(inputs, planes, stride, padded)

    @property
    def last_norm(self) -> nn.Module:
        return self.bn2

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        y += x if self.downsample is None else self.downsample(x)
        return F.relu(y, inplace=True)


class Bottleneck(nn.Module):
    """1×1 down, 3×3 (carrying the stride, as in torchvision and timm), 1×1 up to four times the planes."""

    expansion = 4

    def __init__(self, inputs: int, planes: int, stride: int = 1, *, padded: bool = False) -> None:
        super().__init__()
        outputs = planes * self.expansion
        self.conv1 = nn.Conv2d(inputs, planes, 1, bias=False)
        self.bn1 = BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride=stride, padding=1, bias=False)
        self.bn2 = BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, outputs, 1, bias=False)
        self.bn3 = BatchNorm2d(outputs)
        self.downsample = shortcut(inputs, outputs, stride, padded)

    @property
    def last_norm(self) -> nn.Module:
        return self.bn3

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        y += x if self.downsample is None else self.downsample(x)
        return F.relu(y, inplace=True)


BLOCKS: dict[str, type[BasicBlock] | type[Bottleneck]] = {"basic": BasicBlock, "bottleneck": Bottleneck}


class ResNetTrunk(nn.Module):
    """Stem and stages without a head: images → (batch, channels, height, width)."""

    def __init__(
        self,
        in_chans: int,
        layers: tuple[int, ...],
        widths: tuple[int, ...],
        *,
        block: str = "basic",
        stem: str = "imagenet",
        padded: bool = False,
    ) -> None:
        super().__init__()
        kernel, stride = (7, 2) if stem == "imagenet" else (3, 1)
        self.conv1 = nn.Conv2d(in_chans, widths[0], kernel, stride=stride, padding=kernel // 2, bias=False)
        self.bn1 = BatchNorm2d(widths[0])
        self.pool = nn.MaxPool2d(3, stride=2, padding=1) if stem == "imagenet" else nn.Identity()
        inputs, self.stages = widths[0], len(layers)
        for number, (count, width) in enumerate(zip(layers, widths, strict=False)):
            strides = [1 if number == 0 else 2] + [1] * (count - 1)
            blocks = []
            for stride in strides:
                blocks.append(BLOCKS[block](inputs, width, stride, padded=padded))
                inputs = width * BLOCKS[block].expansion
            self.add_module(f"layer{number + 1}", nn.Sequential(*blocks))
        self.outputs = inputs

    def forward(self, x: Tensor) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        x = self.pool(F.relu(self.bn1(self.conv1(x)), inplace=True))
        for number in range(self.stages):
            x = self.get_submodule(f"layer{number + 1}")(x)
        return x


class ResNet(TrunkNetwork):
    """Trunk → mean over positions → linear head."""

    config: ResNetConfig
    trunk: ResNetTrunk

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__(config)
        self.trunk = ResNetTrunk(
            config.in_chans,
            config.layers,
            config.widths,
            block=config.block,
            stem=config.stem,
            padded=config.padded,
        )
        self.drop = Dropout(config.drop_rate)
        initialise(self, "he")
        if config.zero_init_last:
            self.silence_branches()
        self.head = make_head(self.head_inputs, config.num_classes)
        number_streams(self)

    def silence_branches(self) -> None:
        """Start each branch at zero, so that the network starts as its shortcuts (Goyal et al. 2017, §5.1)."""
        for block in self.modules():
            if isinstance(block, BasicBlock | Bottleneck):
                nn.init.zeros_(block.last_norm.weight)  # type: ignore[arg-type]

    @property
    def head_inputs(self) -> int:
        return self.trunk.outputs


def sizes() -> Sizes:
    """Tables 1 and 6 of the paper; `_cifar` has a 3×3 stem."""
    shapes: dict[int, tuple[str, tuple[int, ...]]] = {
        18: ("basic", (2, 2, 2, 2)),
        34: ("basic", (3, 4, 6, 3)),
        50: ("bottleneck", (3, 4, 6, 3)),
        101: ("bottleneck", (3, 4, 23, 3)),
        152: ("bottleneck", (3, 8, 36, 3)),
    }
    small: dict[str, Any] = {"stem": "cifar", "img_size": (32, 32), "num_classes": 10}
    for depth, (block, layers) in shapes.items():
        shape: dict[str, Any] = {"block": block, "layers": layers}
        yield f"resnet{depth}", ResNetConfig(**shape)
        yield f"resnet{depth}_cifar", ResNetConfig(**shape, **small)
    for depth in (8, 20, 32, 44, 56, 110):
        thin: dict[str, Any] = {"layers": ((depth - 2) // 6,) * 3, "widths": (16, 32, 64), "padded": True}
        yield f"resnet{depth}_cifar", ResNetConfig(**thin, **small, zero_init_last=False)
