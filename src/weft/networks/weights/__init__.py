"""Weights on disk: weft's own, and an adapter for each foreign kind (timm, Google's npz, Hugging Face, CIFAR ResNets);
resizing; packages that bring trained weights.

Imports `networks` and `nn`. Nothing here runs code from a checkpoint.
"""

from weft.networks.weights.build import network_from_folder
from weft.networks.weights.load import load_weights
from weft.networks.weights.save import save_weights

__all__ = ["load_weights", "network_from_folder", "save_weights"]
