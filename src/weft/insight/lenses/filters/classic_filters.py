"""The hand-made filters: three edge detectors, sharpen, box and Gaussian blur, applied by correlation."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

HANDMADE: dict[str, tuple[tuple[float, float, float], ...]] = {
    "edges, diagonal": ((1, 0, -1), (0, 0, 0), (-1, 0, 1)),
    "edges, 4 ways": ((0, 1, 0), (1, -4, 1), (0, 1, 0)),
    "edges, 8 ways": ((-1, -1, -1), (-1, 8, -1), (-1, -1, -1)),
    "sharpen": ((0, -1, 0), (-1, 5, -1), (0, -1, 0)),
    "box blur": ((1 / 9,) * 3,) * 3,
    "Gaussian blur": ((1 / 16, 2 / 16, 1 / 16), (2 / 16, 4 / 16, 2 / 16), (1 / 16, 2 / 16, 1 / 16)),
}


def kernel(name: str) -> Tensor:
    """The 3×3 kernel called `name`, in float64."""
    return torch.tensor(HANDMADE[name], dtype=torch.double)


def filtered(image: NDArray[np.uint8], name: str) -> NDArray[np.float64]:
    """A picture (height, width, 3) after a filter, each colour by itself; the borders continue the outermost pixels."""
    colours = torch.from_numpy(image.astype(np.float64)).permute(2, 0, 1)[:, None]  # each colour an image of its own
    padded = F.pad(colours, (1, 1, 1, 1), mode="replicate")
    return F.conv2d(padded, kernel(name)[None, None])[:, 0].permute(1, 2, 0).numpy()


def visible(values: NDArray[np.float64], name: str) -> NDArray[np.uint8]:
    """What a filter gives as pixels: edges by their size, the others as they are."""
    shown = np.abs(values) if name.startswith("edges") else values
    return np.clip(shown, 0, 255).round().astype(np.uint8)


def most_like(filter3: NDArray[np.float64]) -> tuple[str, float]:
    """The hand-made filter that a 3×3 filter points most alike, either way round, and the cosine between them."""
    size = np.linalg.norm(filter3)
    if not size:
        return "", 0.0
    cosines = {name: float((kernel(name).numpy() * filter3).sum() / size / kernel(name).norm()) for name in HANDMADE}
    best = max(cosines, key=lambda name: abs(cosines[name]))
    return best, cosines[best]
