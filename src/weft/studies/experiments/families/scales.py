"""Three scales of e9 and e10: `smoke` is a minute, `cpu` at most two hours on two cores, `paper` for accelerators.

Both studies ask for the same size, steps and rates at a scale, so that a candidate of both is one run.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.studies.compare.candidates import Facts
from weft.studies.compare.config import ComparisonConfig
from weft.studies.experiments.registry import Request, find_scale
from weft.training.config import ExecutionConfig, OptimisationConfig


@dataclass(frozen=True)
class FamilyScale:
    """How large the networks are, and how long they learn."""

    name: str
    amount: str | None
    """multiply-adds of every network of e10, and of the smallest of e9; None: what suits the inputs"""
    sizes: dict[str, float]
    """of e9: the mark behind a family's name, and times that amount"""
    steps: int
    batch: int
    trials: int
    """learning rates tried for each candidate, in e9 of the smallest size, in a quarter of a run each"""
    seeds: int = 3


SCALES: dict[str, FamilyScale] = {
    "smoke": FamilyScale("smoke", None, {"": 1.0, "×2": 2.0}, steps=12, batch=32, trials=0, seeds=2),
    # the smallest hybrid has 3.3 M multiply-adds at 32 px; 500 steps are 0.7 epochs of CIFAR-10, minutes of one core
    "cpu": FamilyScale("cpu", "5M", {"": 1.0, "×2": 2.0, "×4": 4.0}, steps=500, batch=64, trials=3),
    # 4 G is about ResNet-50 and ViT-S/16; 300 epochs of ImageNet, as DeiT and gMLP are trained
    "paper": FamilyScale("paper", "4G", {"": 1.0, "×2": 2.0, "×4": 4.0}, steps=375_000, batch=1024, trials=0),
}
PUBLISHED = Facts(  # what candidates must know of ImageNet, which need not be here for a plan
    "ImageNet", "image", "classes", 1000, "", 1_281_167, {"img_size": (224, 224), "in_chans": 3}
)


def question(request: Request) -> ComparisonConfig:
    """What e9 and e10 ask at a scale: equal multiply-adds and steps, and as many trials for every candidate."""
    scale = find_scale(SCALES, request.scale)
    return ComparisonConfig(
        source=request.source,
        match="macs",
        amount=scale.amount,
        seeds=request.seeds or scale.seeds,
        steps=request.steps or scale.steps,
        trials=scale.trials,
        on=request.on,
        reuse=request.reuse,
        optimisation=OptimisationConfig(batch_size=scale.batch),
        execution=ExecutionConfig(device="cuda" if scale.name == "paper" else "auto"),  # which a cluster is asked for
    )
