"""What the first layer of a network has learned: its filters as pictures, and their principal components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from weft.insight.drawing.raster import Pixels, signed
from weft.networks.base.network import Network
from weft.networks.config import MLPConfig
from weft.nn.convolution import LocallyConnected2d
from weft.nn.embeddings import PatchEmbed


@dataclass(frozen=True)
class FirstLayer:
    """The first layer's weights as filters (filters, channels, height, width), and the layer's name and kind."""

    name: str
    kind: str
    filters: Tensor

    def components(self) -> tuple[Tensor, Tensor]:
        """Principal components of the filters, shaped as they are, and the share of the energy of each."""
        flat = self.filters.flatten(1).double()
        _, sizes, directions = torch.linalg.svd(flat, full_matrices=False)
        return directions.reshape(-1, *self.filters.shape[1:]), sizes.square() / sizes.square().sum().clamp(min=1e-30)


def first_layer(network: Network) -> FirstLayer | None:
    """The layer that meets the pixels; None where the network reads no images."""
    config = network.config
    if config.input != "image":
        return None
    for name, module in network.named_modules():
        if isinstance(module, PatchEmbed) and not config.hybrid:
            return FirstLayer(name, "patch embedding", module.weight.detach())
        if isinstance(module, nn.Conv2d):
            return FirstLayer(name, "convolution", module.weight.detach())
        if isinstance(module, LocallyConnected2d):
            return FirstLayer(name, "locally connected", local_filters(module))
        if isinstance(module, nn.Linear) and isinstance(config, MLPConfig) and config.img_size is not None:
            shaped = module.weight.detach().reshape(-1, config.in_chans, *config.img_size)
            return FirstLayer(name, "dense", shaped)
    return None


def local_filters(layer: LocallyConnected2d) -> Tensor:
    """The first filter of a locally connected layer at every position, in reading order: no two need be alike."""
    side = layer.kernel
    return layer.weight.detach()[:, :, 0].reshape(layer.weight.shape[0], -1, side, side)


def as_picture(weights: Tensor) -> Pixels:
    """(channels, height, width) as colours around grey where there are three channels, else their sum, blue to red."""
    values: NDArray[np.float64] = weights.double().numpy()
    if len(values) != 3:
        return signed(values.sum(0))
    reach = float(np.abs(values).max()) or 1.0
    return np.clip((values / (2 * reach) + 0.5) * 255, 0, 255).round().astype(np.uint8).transpose(1, 2, 0)
