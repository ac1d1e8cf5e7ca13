"""Transfer against the clock: features, a second probe, and a step of fine-tuning.

    python benchmarks/features.py /path/to/photos [--images 128] [--turns 3] [--part features probe step]

features   speed of computing features of real images over that of the bare forward pass of the same network, timed in
           turns, in wall time and in processor time (which other programs on the machine change less). Wanted: 0.9.
probe      seconds of `weft.probe` once the features are in the cache, scores computed anew. Wanted: below 5.
step       a step of fine-tuning of EfficientNet-Lite0 and ResNet-50, batch norms held, against timm's same network with
           its batch norms in evaluation, interleaved. Wanted: a median ratio of at least 1.0. Needs timm
           (tests/oracles.txt).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import weft
from weft.nn.norm import hold_statistics
from weft.training.features import store
from weft.training.features.folding import pooled
from weft.training.finetuning.config import FinetuneConfig
from weft.training.finetuning.prepare import open_frozen

STEPS = {"efficientnet_lite0": 192, "resnet50": 128}  # network: side


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the wall, and of all processors."""
    wall, cpu = time.perf_counter(), time.process_time()
    with torch.inference_mode():
        work()
    return time.perf_counter() - wall, time.process_time() - cpu


def features(place: str, count: int, turns: int) -> None:
    source = weft.open_source(place)
    frozen, _ = open_frozen(FinetuneConfig(start="efficientnet_lite0", source=place), source)
    size, split, rows = frozen.transform.size, source.splits["train"], np.arange(count)
    batches = torch.randn(count, 3, size, size).split(store.BATCH)
    _ = frozen.reader
    ratios: list[tuple[float, float]] = []
    for _ in range(turns):
        bare = timed(lambda: [pooled(frozen.network, batch) for batch in batches])
        found = timed(lambda: store.computed(source, split, frozen, rows))
        ratios.append((bare[0] / found[0], bare[1] / found[1]))
        print(f"bare {count / bare[0]:.1f}/s, features {count / found[0]:.1f}/s")
    wall, cpu = (statistics.median(column) for column in zip(*ratios, strict=True))
    print(f"speed over that of the bare forward pass: {wall:.2f} by the wall, {cpu:.2f} by processor time")


def probe(place: str, count: int, turns: int) -> None:
    weft.probe("efficientnet_lite0", place, say=print)
    started = time.perf_counter()
    found = weft.probe("efficientnet_lite0", place, seed=1)  # other draws: nothing but the features is known
    print(f"a second probe: {time.perf_counter() - started:.1f} s; {found.recommendation}")


def step(place: str, count: int, turns: int) -> None:
    from networks import ratio, timm

    for name, side in STEPS.items():
        images, targets = torch.randn(8, 3, side, side), torch.randint(0, 10, (8,))
        mine, other = weft.create_model(name, img_size=(side, side)).train(), timm.create_model(name).train()
        hold_statistics(mine)
        for module in other.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()

        def learn(network: nn.Module, images: Tensor = images, targets: Tensor = targets) -> None:
            network.zero_grad(set_to_none=True)
            F.cross_entropy(network(images), targets).backward()

        found, ours = ratio(partial(learn, mine), partial(learn, other), 5 * turns)
        print(f"{name}, {side} px, batch 8: timm/weft {found:.2f}, {8 / ours:.1f} images/s")


PARTS = {"features": features, "probe": probe, "step": step}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos")
    parser.add_argument("--images", type=int, default=128)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    asked = parser.parse_args()
    for part in asked.part:
        PARTS[part](asked.photos, asked.images, asked.turns)


if __name__ == "__main__":
    main()
