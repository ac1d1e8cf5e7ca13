"""Residual blocks of ResNet (He et al. 2015), basic and bottleneck, and their two shortcuts (C4)."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

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
