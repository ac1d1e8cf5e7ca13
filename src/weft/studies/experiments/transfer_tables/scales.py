"""Scales of the transfer studies: `smoke` is a minute, `cpu` at most 90 minutes on two cores, `paper` as published.

`paper` is planned and not run without a GPU; its set to learn from is the user's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Changes = dict[str, Any]
TRAINED = "efficientnet_lite0"  # comes with ImageNet weights by pip


@dataclass(frozen=True)
class TransferScale:
    """Which networks stand for the families, and how long they learn."""

    name: str
    networks: dict[str, tuple[str, Changes]]
    """family -> named size and changes to it"""
    side: int
    """of images as small as they are; enlarged ones have twice that"""
    batch: int
    seeds: int
    task_steps: int
    """of a task, alike for all rows"""
    steps: int | None = None
    """of pre-training; None: as many as there is time for"""
    time: dict[str, str] = field(default_factory=dict)
    """study -> time of a run on the larger set, on the mean over the rows"""
    task_batch: int = 32
    task_rate: float = 3e-4
    """of networks that weft has pre-trained"""
    trained_side: int = 96
    """of images for the network that comes trained; none below 32"""
    shots: tuple[int, ...] = (5,)
    """rows a class of the few-shot figures"""
    probe: float = 3.0
    """seconds for which each run is timed"""


def small(patch: int, **changes: Any) -> dict[str, tuple[str, Changes]]:
    """The small networks of the families, with square patches."""
    names = {"vit": "vit_pico_p4_32", "mixer": "mixer_pico_p4_32", "gmlp": "gmlp_pico_p4_32"}
    tokens = {family: (name, {"patch_size": patch, **changes}) for family, name in names.items()}
    return {"resnet": ("resnet8_cifar", {}), **tokens}


PUBLISHED: dict[str, tuple[str, Changes]] = {
    "resnet": ("resnet152", {}),
    "vit": ("vit_base_patch16_224", {}),
    "mixer": ("mixer_b16_224", {}),
    "gmlp": ("gmlp_b16_224", {}),
}

SCALES: dict[str, TransferScale] = {
    "smoke": TransferScale("smoke", small(2, depth=1), 8, 32, 1, 6, steps=6, shots=(1,), probe=0.1, trained_side=0),
    # four short runs rather than two long ones: two seeds show nothing, not even a lead of sixty points
    "cpu": TransferScale("cpu", small(4), 32, 64, 4, 300, time={"e3": "2m", "e8": "1m"}),
    # 90 passes over ImageNet-21k in batches of 4096 (Dosovitskiy et al. 2021, table 3), 500 steps of a task (table 4)
    "paper": TransferScale("paper", PUBLISHED, 224, 4096, 3, 500, steps=312_000, task_batch=512, shots=(5,)),
}
