"""scikit-learn's digits: 8 × 8 grey images, 1,797 of them, embedded."""

from __future__ import annotations

from typing import Any

from weft.data.config import AugmentConfig
from weft.training.config import DurationConfig, OptimisationConfig, RunConfig

RECIPES = ("mlp", "lenet", "resnet", "rcnn", "vit", "mixer", "gmlp")

TOKENS = {"patch_size": 2, "dim": 64, "depth": 4}  # 16 tokens of 2 × 2 pixels


def run(model: str, network: dict[str, Any], epochs: float = 60, lr: float = 2e-3, crop: int = 1) -> RunConfig:
    """What all share: small batches, a shift of a pixel, an averaged network."""
    return RunConfig(
        source="digits",
        model=model,
        network=network,
        augment=AugmentConfig(crop_padding=crop),
        optimisation=OptimisationConfig(batch_size=64, lr=lr, weight_decay=0.05, model_ema_decay=0.99),
        duration=DurationConfig(epochs=epochs),
    )


def mlp() -> RunConfig:
    """Perceptron stack.

    weft train --recipe digits/mlp
    Expect 98.6 % (97.2 – 99.7 over examples, one seed), 85,002 parameters,
    5 CPU seconds of training on two AVX2 cores.
    """
    return run("mlp", {"hidden": [256, 256], "drop_rate": 0.1})


def lenet() -> RunConfig:
    """LeNet with one layer of 3×3 kernels.

    weft train --recipe digits/lenet
    Expect 98.3 % (96.9 – 99.4 over examples, one seed), 10,090 parameters,
    5 CPU seconds of training on two AVX2 cores.
    """
    return run("lenet5", {"kernel": 3, "channels": [16], "fc": [64]})


def resnet() -> RunConfig:
    """A residual network of two stages.

    weft train --recipe digits/resnet
    Expect 99.2 % (98.1 – 100.0 over examples, one seed), 75,114 parameters,
    40 CPU seconds of training on two AVX2 cores.
    """
    return run("resnet20_cifar", {"layers": [1, 1], "widths": [32, 64]})


def rcnn() -> RunConfig:
    """Recurrent ConvNet.

    weft train --recipe digits/rcnn
    Expect 98.9 % (97.8 – 99.7 over examples, one seed), 75,946 parameters,
    64 CPU seconds of training on two AVX2 cores.
    """
    return run("rcnn_96", {"width": 32})


def vit() -> RunConfig:
    """Vision Transformer.

    weft train --recipe digits/vit
    Expect 95.3 % (93.0 – 97.2 over examples, one seed), 136,138 parameters,
    75 CPU seconds of training on two AVX2 cores.
    """
    return run("vit_nano_p4_32", {**TOKENS, "heads": 4, "hidden_dim": 128})


def mixer() -> RunConfig:
    """MLP-Mixer.

    weft train --recipe digits/mixer
    Expect 98.6 % (97.2 – 99.7 over examples, one seed), 72,714 parameters,
    44 CPU seconds of training on two AVX2 cores.
    """
    return run("mixer_nano_p4_32", {**TOKENS, "token_dim": 32, "hidden_dim": 128})


def gmlp() -> RunConfig:
    """gMLP with the split gate.

    weft train --recipe digits/gmlp
    Expect 98.1 % (96.4 – 99.4 over examples, one seed), 103,306 parameters,
    45 CPU seconds of training on two AVX2 cores.
    """
    return run("gmlp_nano_p4_32", {**TOKENS, "hidden_dim": 256})
