"""A small network for digits to start from, and fine-tuning runs of seconds."""

from __future__ import annotations

from typing import Any

import torch

from weft.data.config import AugmentConfig
from weft.networks.registry import create_model
from weft.nn.norm import BatchNorm2d
from weft.training.config import DurationConfig, ExecutionConfig, OptimisationConfig
from weft.training.finetuning.config import FinetuneConfig, ThawingConfig

TINY: dict[str, Any] = {"layers": (1, 1), "widths": (8, 16), "img_size": 8, "in_chans": 1}


def tiny() -> torch.nn.Module:
    """A trained-looking residual network for digits: its norms have statistics of their own."""
    torch.manual_seed(0)
    network = create_model("resnet20_cifar", **TINY)
    for module in network.modules():
        if isinstance(module, BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 2)
            module.weight.data.uniform_(0.5, 1.5)
    return network


def configure(start: object, steps: int = 6, source: str = "digits", **thawing: Any) -> FinetuneConfig:
    return FinetuneConfig(
        start=str(start),
        source=source,
        optimisation=OptimisationConfig(batch_size=32, lr=1e-3),
        duration=DurationConfig(steps=steps),
        execution=ExecutionConfig(threads=1, compile=False, precision="float32"),
        thawing=ThawingConfig(**thawing),
        augment=AugmentConfig() if thawing.get("frozen") else AugmentConfig(flip=False, crop_padding=0),
    )
