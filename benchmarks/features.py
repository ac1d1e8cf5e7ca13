"""Speed of computing features against the bare forward pass of the same network, on real images.

python benchmarks/features.py /path/to/photos [images]

Both are timed in turns, in wall time and in processor time (which other programs on the machine change less), and the
median of the ratios is printed. Wanted: at least 0.9.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

import weft
from weft.training.features import store
from weft.training.features.folding import pooled
from weft.training.finetuning.config import FinetuneConfig
from weft.training.finetuning.prepare import open_frozen


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the wall, and of all processors."""
    wall, cpu = time.perf_counter(), time.process_time()
    with torch.inference_mode():
        work()
    return time.perf_counter() - wall, time.process_time() - cpu


def main(place: str, count: int = 128, turns: int = 3) -> None:
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


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
