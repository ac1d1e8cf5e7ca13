"""What colours become: blends towards a simpler image, and maps of levels. All in integers or exactly rounded."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Draws = NDArray[np.float64]


def grey(images: Tensor) -> Tensor:
    """(batch, 1, height, width) uint8 luma, ITU-R 601; the only channel of images that have one."""
    if images.shape[1] == 1:
        return images
    red, green, blue = images.to(torch.int32).unbind(1)
    return ((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16).to(torch.uint8)[:, None]


def blend(simpler: Tensor, images: Tensor, factor: Draws) -> Tensor:
    """simpler + factor · (images − simpler): 0 gives the simpler image, 1 the image, above 1 exaggerates."""
    weight = torch.from_numpy(factor).float().view(-1, 1, 1, 1)
    low = simpler.float()
    return (low + weight * (images.float() - low)).round_().clamp_(0, 255).to(torch.uint8)


def brightness(images: Tensor, factor: Draws) -> Tensor:
    """Blend with black."""
    return blend(torch.zeros(1, 1, 1, 1), images, factor)


def contrast(images: Tensor, factor: Draws) -> Tensor:
    """Blend with the image's mean luma."""
    luma = grey(images).flatten(1)
    mean = (luma.sum(1, dtype=torch.int64) * 2 + luma.shape[1]) // (2 * luma.shape[1])  # rounded, in integers
    return blend(mean.view(-1, 1, 1, 1), images, factor)


def saturation(images: Tensor, factor: Draws) -> Tensor:
    """Blend with the grey image."""
    return blend(grey(images), images, factor)


def sharpness(images: Tensor, factor: Draws) -> Tensor:
    """Blend with the image smoothed by Pillow's kernel (1 1 1, 1 5 1, 1 1 1) / 13; the border stays."""
    smooth = images.clone()
    if min(images.shape[-2:]) > 2:
        levels = images.to(torch.int16)
        rows = levels[..., :-2, :] + levels[..., 1:-1, :] + levels[..., 2:, :]
        sums = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:] + 4 * levels[..., 1:-1, 1:-1]
        smooth[..., 1:-1, 1:-1] = ((2 * sums + 13) // 26).to(torch.uint8)  # sums / 13, rounded
    return blend(smooth, images, factor)


def posterize(images: Tensor, bits: NDArray[np.int64]) -> Tensor:
    """Keep the uppermost `bits` bits of each image's levels."""
    masks = torch.from_numpy((0xFF << (8 - bits)) & 0xFF).to(torch.uint8)
    return images & masks.view(-1, 1, 1, 1)


def solarize(images: Tensor, threshold: Draws) -> Tensor:
    """Invert the levels at or above each image's threshold."""
    limits = torch.from_numpy(threshold).float().view(-1, 1, 1, 1)
    return torch.where(images.float() >= limits, 255 - images, images)


def autocontrast(images: Tensor) -> Tensor:
    """Stretch each channel to the full range; a flat one stays."""
    low = images.amin((2, 3), keepdim=True).float()
    high = images.amax((2, 3), keepdim=True).float()
    scale = torch.where(high > low, 255 / (high - low).clamp_min(1), 1.0)
    shift = torch.where(high > low, low, 0.0)
    return ((images.float() - shift) * scale).round_().clamp_(0, 255).to(torch.uint8)


def equalize(images: Tensor) -> Tensor:
    """Map the levels of each channel so that they occur about equally often, as Pillow does it."""
    planes = images.flatten(2).flatten(0, 1).long()  # (batch · channels, pixels)
    base = torch.arange(len(planes))[:, None] * 256
    counts = torch.bincount((planes + base).flatten(), minlength=len(planes) * 256).view(-1, 256)
    last = counts.gather(1, planes.amax(1, keepdim=True))  # how often the brightest level occurs
    step = (planes.shape[1] - last) // 255
    before = counts.cumsum(1) - counts
    table = ((before + step // 2) // step.clamp_min(1)).clamp_max(255)
    table = torch.where(step > 0, table, torch.arange(256))
    return table.gather(1, planes).to(torch.uint8).view(images.shape)
