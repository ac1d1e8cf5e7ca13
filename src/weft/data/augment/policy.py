"""TrivialAugment (Müller and Hutter, 2021) and RandAugment (Cubuk et al., 2020) on whole batches.

Each image draws an operation; the images of a batch that drew the same one are changed together. The five geometric
operations are all affine maps, so they are drawn in one go.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.augment import colour
from weft.data.augment.geometry import affine

Draws = NDArray[np.float64]

BLENDS: dict[str, Callable[[Tensor, Draws], Tensor]] = {
    "brightness": colour.brightness,
    "saturation": colour.saturation,
    "contrast": colour.contrast,
    "sharpness": colour.sharpness,
}
GEOMETRIC = ("shear_x", "shear_y", "translate_x", "translate_y", "rotate")
OPERATIONS = ("identity", *GEOMETRIC, *BLENDS, "posterize", "solarize", "autocontrast", "equalize")


class Ranges:
    """The strongest form of each operation: how far `amount` 1 goes."""

    def __init__(self, shear: float, pixels: float, degrees: float, factor: float, bits: int) -> None:
        self.shear, self.pixels, self.degrees, self.factor, self.bits = shear, pixels, degrees, factor, bits


WIDE = Ranges(shear=0.99, pixels=32.0, degrees=135.0, factor=0.99, bits=6)  # TrivialAugment's wide space
NARROW = Ranges(shear=0.3, pixels=150 / 331, degrees=30.0, factor=0.9, bits=4)  # RandAugment's; shift as a share


def trivial_augment(images: Tensor, draws: Draws) -> Tensor:
    """One operation of random strength each; draws (batch, 3): operation, strength, sign. Strength has 31 levels."""
    strength = np.floor(draws[:, 1] * 31) / 30
    return apply(images, _pick(draws[:, 0]), strength, draws[:, 2] < 0.5, WIDE)


def rand_augment(images: Tensor, draws: Draws, layers: int, magnitude: float) -> Tensor:
    """`layers` random operations of strength magnitude/30 one after the other; draws (batch, 2 · layers)."""
    for layer in range(layers):
        strength = np.full(len(images), magnitude / 30)
        images = apply(images, _pick(draws[:, 2 * layer]), strength, draws[:, 2 * layer + 1] < 0.5, NARROW)
    return images


def _pick(draws: Draws) -> NDArray[np.int64]:
    return (draws * len(OPERATIONS)).astype(np.int64)


def apply(
    images: Tensor, chosen: NDArray[np.int64], strength: Draws, negative: NDArray[np.bool_], ranges: Ranges
) -> Tensor:
    """Apply operation number chosen[i] to image i with strength[i] in [0, 1] and, where it has one, its sign."""
    signed = np.where(negative, -strength, strength)
    out = images.clone()
    names = np.array(["geometric" if name in GEOMETRIC else name for name in OPERATIONS])[chosen]
    for name in np.unique(names):
        rows = np.flatnonzero(names == name)
        where = torch.from_numpy(rows)
        if name == "geometric":
            maps = affine_maps(np.array(OPERATIONS)[chosen[rows]], signed[rows], images.shape[-1], ranges)
            out[where] = affine(images[where], maps)
        elif name != "identity":
            out[where] = _recolour(name, images[where], strength[rows], signed[rows], ranges)
    return out


def affine_maps(names: NDArray[np.str_], amount: Draws, side: int, ranges: Ranges) -> Draws:
    """(batch, 2, 3) maps of the named geometric operations, amount in [-1, 1]."""
    maps = np.tile(np.eye(2, 3), (len(names), 1, 1))
    reach = ranges.pixels * side if ranges.pixels < 1 else min(ranges.pixels, side)
    maps[names == "shear_x", 0, 1] = amount[names == "shear_x"] * ranges.shear
    maps[names == "shear_y", 1, 0] = amount[names == "shear_y"] * ranges.shear
    maps[names == "translate_x", 0, 2] = amount[names == "translate_x"] * 2 * reach / side
    maps[names == "translate_y", 1, 2] = amount[names == "translate_y"] * 2 * reach / side
    turn = names == "rotate"
    angle = np.deg2rad(amount[turn] * ranges.degrees)
    maps[turn, 0, 0], maps[turn, 0, 1] = np.cos(angle), -np.sin(angle)
    maps[turn, 1, 0], maps[turn, 1, 1] = np.sin(angle), np.cos(angle)
    return maps


def _recolour(name: str, images: Tensor, strength: Draws, signed: Draws, ranges: Ranges) -> Tensor:
    if name == "posterize":
        return colour.posterize(images, 8 - np.rint(strength * ranges.bits).astype(np.int64))
    if name == "solarize":
        return colour.solarize(images, 255.0 * (1 - strength))
    if name == "autocontrast":
        return colour.autocontrast(images)
    if name == "equalize":
        return colour.equalize(images)
    return BLENDS[name](images, 1 + signed * ranges.factor)
