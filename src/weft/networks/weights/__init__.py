"""Foreign checkpoints: one adapter a source (timm, Google's npz, Hugging Face, CIFAR ResNets), and resizing.

Imports `networks` and `nn`. Nothing here runs code from a checkpoint.
"""

from weft.networks.weights.build import network_from_folder
from weft.networks.weights.load import load_weights
from weft.networks.weights.save import save_weights

__all__ = ["load_weights", "network_from_folder", "save_weights"]
