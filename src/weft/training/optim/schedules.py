"""The learning rate as a pure function of the step, so that a resumed run needs no schedule state (F5)."""

from __future__ import annotations

import math
from collections.abc import Callable

ONECYCLE_WARMUP = 0.3  # share of the run that rises (Smith & Topin 2018)
ONECYCLE_START = 1 / 25
FINAL = 1e-3  # the decaying shapes end at this share of the peak: the last epoch still moves a little


def rate(name: str, step: int, total: int, warmup: int) -> float:
    """The share of the peak rate at `step` of `total` steps, `warmup` of which rise linearly; between 0 and 1."""
    if name == "onecycle":
        return onecycle(step / max(total, 1))
    if step < warmup:
        return (step + 1) / (warmup + 1)
    done = (step - warmup) / max(total - warmup, 1)
    return SHAPES[name](min(done, 1.0))


def cosine(done: float) -> float:
    """Half a cosine from 1 to FINAL."""
    return FINAL + (1 - FINAL) * (1 + math.cos(math.pi * done)) / 2


def linear(done: float) -> float:
    """A straight line from 1 to FINAL."""
    return 1 - (1 - FINAL) * done


def constant(done: float) -> float:
    """No change."""
    return 1.0


def onecycle(done: float) -> float:
    """A cosine up from ONECYCLE_START to 1 and another down to FINAL; brings its own warm-up."""
    if done < ONECYCLE_WARMUP:
        return 1 - (1 - ONECYCLE_START) * (1 + math.cos(math.pi * done / ONECYCLE_WARMUP)) / 2
    return cosine((min(done, 1.0) - ONECYCLE_WARMUP) / (1 - ONECYCLE_WARMUP))


SHAPES: dict[str, Callable[[float], float]] = {"cosine": cosine, "linear": linear, "constant": constant}
