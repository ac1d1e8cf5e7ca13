"""Where pixels go: flip, padded crop, random-resized crop, affine maps."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import grid_sample, pad

Draws = NDArray[np.float64]


def flip(images: Tensor, draws: Draws) -> Tensor:
    """Mirror the images whose draw (batch, 1) is below a half."""
    chosen = torch.from_numpy(np.flatnonzero(draws[:, 0] < 0.5))
    out = images.clone()
    out[chosen] = images[chosen].flip(-1)
    return out


def padded_crop(images: Tensor, draws: Draws, padding: int) -> Tensor:
    """Shift by up to `padding` pixels each way, black coming in; draws (batch, 2) place the window."""
    height, width = images.shape[-2:]
    places = (draws * (2 * padding + 1)).astype(np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(pad(images, [padding] * 4).numpy(), (height, width), axis=(2, 3))
    return torch.from_numpy(windows[np.arange(len(images)), :, places[:, 0], places[:, 1]])


def crop_boxes(draws: Draws, area: tuple[float, float]) -> Draws:
    """(batch, 4) top, left, height, width as shares of the image, from draws (batch, 4).

    The area is uniform in `area` and the ratio of the sides log-uniform in [3/4, 4/3], as Inception's crop has them;
    a side that would leave the image is cut to it.
    """
    share = area[0] + draws[:, 0] * (area[1] - area[0])
    ratio = np.exp((draws[:, 1] * 2 - 1) * np.log(4 / 3))
    height = np.minimum(np.sqrt(share / ratio), 1.0)
    width = np.minimum(np.sqrt(share * ratio), 1.0)
    return np.stack([draws[:, 2] * (1 - height), draws[:, 3] * (1 - width), height, width], axis=1)


def resized_crop(images: Tensor, boxes: Draws) -> Tensor:
    """Cut out each image's box and enlarge it to the whole image."""
    top, left, height, width = boxes.T
    zero = np.zeros_like(top)
    x = np.stack([width, zero, 2 * left + width - 1], axis=1)
    y = np.stack([zero, height, 2 * top + height - 1], axis=1)
    return affine(images, np.stack([x, y], axis=1), border=True)


def affine(images: Tensor, maps: Draws, border: bool = False) -> Tensor:
    """Draw each image through its map (batch, 2, 3) from places in the result to places in the image, both in
    [-1, 1]; outside is black, or the border's colour. Bilinear, rounded to integers."""
    drawn = grid_sample(
        images.float(),
        torch.from_numpy(_grid(maps, *images.shape[-2:])),
        padding_mode="border" if border else "zeros",
        align_corners=False,
    )
    return drawn.round_().to(torch.uint8)


def _grid(maps: Draws, height: int, width: int) -> NDArray[np.float32]:
    """(batch, height, width, 2) places in the image. Not `affine_grid`: its matrix product rounds differently in
    batches of another size, and then an image would depend on which rank made it."""
    x = (2 * np.arange(width, dtype=np.float32) + 1) / width - 1
    y = ((2 * np.arange(height, dtype=np.float32) + 1) / height - 1)[:, None]
    small = maps.astype(np.float32)[:, :, :, None, None]
    return np.stack([small[:, row, 0] * x + small[:, row, 1] * y + small[:, row, 2] for row in (0, 1)], axis=-1)
