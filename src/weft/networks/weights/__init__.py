"""Weights on disk: weft's own, and an adapter for each foreign kind (timm, Google's npz, Hugging Face, CIFAR ResNets);
resizing; packages that bring trained weights.

Imports `networks` and `nn`. Nothing here runs code from a checkpoint. The names below are loaded on first use:
`weft.networks.weights.packages` must stay free of torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.networks.weights.build import network_from_folder
    from weft.networks.weights.load import load_weights
    from weft.networks.weights.save import save_weights

__all__ = ["load_weights", "network_from_folder", "save_weights"]

_PLACES = {"load_weights": "load", "network_from_folder": "build", "save_weights": "save"}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'weft.networks.weights' has no attribute {name!r}; it has {', '.join(_PLACES)}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
