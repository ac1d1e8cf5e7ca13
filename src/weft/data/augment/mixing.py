"""What touches two images or a part of one, after normalisation: erasing, Mixup and CutMix.

Partners are neighbours in the global batch, 0 with 1, 2 with 3 and so on: the order is random already, and a rank that
holds an even slice has its partners at hand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Draws = NDArray[np.float64]


def erase(images: Tensor, draws: Draws, probability: float, fill: Tensor | None = None) -> Tensor:
    """Set a rectangle to the mean in a share of the images; draws (batch, 5) (Zhong et al., 2020).

    `fill` is that mean, (batch, channels, 1, 1), by default 0.
    A rectangle's area is uniform in 2 to 33 % of the image, the ratio of its sides log-uniform in [0.3, 3.3].
    """
    share = 0.02 + draws[:, 1] * 0.31
    ratio = np.exp(np.log(0.3) + draws[:, 2] * np.log(3.3 / 0.3))
    height, width = np.minimum(np.sqrt(share * ratio), 1.0), np.minimum(np.sqrt(share / ratio), 1.0)
    chosen = draws[:, 0] < probability
    inside = rectangle(draws[:, 3] * (1 - height), draws[:, 4] * (1 - width), height * chosen, width, images.shape)
    return images.masked_fill(inside, 0.0) if fill is None else torch.where(inside, fill, images)


def rectangle(top: Draws, left: Draws, height: Draws, width: Draws, shape: torch.Size) -> Tensor:
    """(batch, 1, height, width) True inside each image's rectangle, given as shares of the image."""
    rows, columns = np.arange(shape[-2]), np.arange(shape[-1])
    first_row, first_column = np.rint(top * shape[-2]), np.rint(left * shape[-1])
    last_row, last_column = np.rint((top + height) * shape[-2]), np.rint((left + width) * shape[-1])
    down = (rows >= first_row[:, None]) & (rows < last_row[:, None])
    across = (columns >= first_column[:, None]) & (columns < last_column[:, None])
    return torch.from_numpy(down[:, None, :, None] & across[:, None, None, :])


def partners(places: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The place in a global batch of `size` that each place is mixed with; an odd last one is left alone."""
    other = places ^ 1
    return np.where(other < size, other, places)


@dataclass(frozen=True)
class Mix:
    """How much of each example stays, and which of its pixels: drawn for a whole slice at once."""

    keep: Draws  # (batch,) weight of the example's own target
    window: Tensor | None  # (batch, 1, height, width) True where CutMix puts the partner's pixels
    weight: Tensor  # (batch, 1, 1, 1) Mixup's weight of the example's own pixels

    def images(self, own: Tensor, other: Tensor) -> Tensor:
        """The mixed images."""
        # Weight 1 leaves an image exactly as it is, so an image does not depend on whether its neighbours are mixed.
        mixed = self.weight * own + (1 - self.weight) * other if bool((self.weight < 1).any()) else own
        return mixed if self.window is None else torch.where(self.window, other, mixed)

    def targets(self, own: Tensor, other: Tensor) -> Tensor:
        """The mixed targets, (batch, classes) or (batch,)."""
        keep = torch.from_numpy(self.keep).to(own.dtype).view(-1, *[1] * (own.ndim - 1))
        return keep * own + (1 - keep) * other


def draw_mix(draws: Draws, shape: torch.Size, mixup: float, cutmix: float, probability: float) -> Mix:
    """Mixup (Zhang et al., 2018) or CutMix (Yun et al., 2019) for each example; draws (batch, 5).

    Where both are on, each example gets one of the two with equal chance.
    """
    applied = draws[:, 0] < probability
    cut = applied & ((draws[:, 1] < 0.5) if mixup and cutmix else np.full(len(draws), cutmix > 0))
    blended = applied & ~cut
    share = np.ones(len(draws))
    share[cut] = _beta(draws[cut, 2], cutmix)
    side = np.sqrt(1 - share)
    window = None
    if cut.any():
        window = rectangle(draws[:, 3] * (1 - side), draws[:, 4] * (1 - side), side, side, shape)
        share[cut] = 1 - window[cut].float().mean((1, 2, 3)).double().numpy()  # what the rounded window left
    share[blended] = _beta(draws[blended, 2], mixup)
    weight = torch.from_numpy(np.where(blended, share, 1.0)).float().view(-1, 1, 1, 1)
    return Mix(share, window, weight)


def _beta(draws: Draws, alpha: float) -> Draws:
    """Beta(alpha, alpha) from uniform draws, by the inverse of its distribution."""
    if alpha == 1 or not len(draws):
        return draws
    from scipy.special import betaincinv  # 0.2 s and 15 MB, for those who mix alone

    return np.asarray(betaincinv(alpha, alpha, draws))
