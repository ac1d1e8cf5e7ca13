"""scikit-learn's digits: 8 × 8 grey images, 1,797 of them, embedded."""

from __future__ import annotations

from typing import Any

from weft.data.config import AugmentConfig
from weft.training.config import BudgetConfig, OptimisationConfig, RunConfig

RECIPES = ("mlp", "lenet", "resnet", "rcnn", "vit", "mixer", "gmlp")

TOKENS = {"patch_size": 2, "dim": 64, "depth": 4}  # 16 tokens of 2 × 2 pixels


def run(model: str, network: dict[str, Any], epochs: float = 60, lr: float = 2e-3, crop: int = 1) -> RunConfig:
    """What all share: small batches, a shift of a pixel, an averaged network."""
    return RunConfig(
        source="digits",
        model=model,
        network=network,
        augment=AugmentConfig(crop_padding=crop),
        optimisation=OptimisationConfig(batch_size=64, lr=lr, weight_decay=0.05, model_ema=0.99),
        budget=BudgetConfig(epochs=epochs),
    )


def mlp() -> RunConfig:
    """Perceptron stack."""
    return run("mlp", {"hidden": [256, 256], "drop_rate": 0.1})


def lenet() -> RunConfig:
    """LeNet with 3×3 kernels on enlarged images."""
    return run("lenet5", {"kernel": 3, "channels": [16], "fc": [64]})


def resnet() -> RunConfig:
    """A residual network of two stages."""
    return run("resnet20_cifar", {"layers": [1, 1], "widths": [32, 64]})


def rcnn() -> RunConfig:
    """Recurrent ConvNet."""
    return run("rcnn_96", {"width": 32})


def vit() -> RunConfig:
    """Vision Transformer."""
    return run("vit_nano_p4_32", {**TOKENS, "heads": 4, "hidden_dim": 128})


def mixer() -> RunConfig:
    """MLP-Mixer."""
    return run("mixer_nano_p4_32", {**TOKENS, "token_dim": 32, "hidden_dim": 128})


def gmlp() -> RunConfig:
    """gMLP with the split gate."""
    return run("gmlp_nano_p4_32", {**TOKENS, "hidden_dim": 256})
