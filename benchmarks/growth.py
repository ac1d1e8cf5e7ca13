"""How time and memory of a training step grow with tokens, depth, width, batch and classes, and an epoch with its rows.

    python benchmarks/growth.py run [--threads 1]     # about ten minutes; docs/results/growth.json as it comes
    python benchmarks/growth.py draw                  # docs/results/growth.md and its chart, from that

One quantity grows by two decades, the others stay: 64 tokens (32 pixels, patches of 4), 4 layers, 64 channels, 16
images, 10 classes. Time is the median of some steps, memory what autograd keeps of one for the backward pass and four
copies of the weights. Slopes are those of a straight line through the logarithms of the larger half of the values,
beside those of multiply-adds by formula.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from weft.machine import cpu_model, keep_freed_memory
from weft.networks.measure.cost import total_macs
from weft.networks.registry import build, configured
from weft.nn.activations import kept_for_backward
from weft.report.curves import curves
from weft.report.standalone import standalone

RESULTS = Path(__file__).parent.parent / "docs" / "results"
FILE = RESULTS / "growth.json"
GROWING: dict[str, list[int]] = {
    "tokens": [4, 16, 36, 144, 400],
    "depth": [1, 3, 10, 30, 100],
    "width": [8, 24, 80, 240, 800],
    "batch": [1, 3, 10, 30, 100],
    "classes": [10, 100, 1000],
}
START = {"tokens": 64, "depth": 4, "width": 64, "batch": 16, "classes": 10}
FAMILIES = ("mixer", "gmlp", "vit", "resnet")
ROWS = [300, 3_000, 30_000]
ENOUGH, FEWEST, MOST = 0.5, 3, 30  # seconds of steps, and their number


def shape(family: str, size: dict[str, int]) -> Any:
    """The configuration of a family at a size; a ResNet's tokens are the positions of its map after a stride of 4."""
    side = round(4 * size["tokens"] ** 0.5)
    wide, deep = size["width"], size["depth"]
    both = {"img_size": side, "num_classes": size["classes"]}
    if family == "resnet":
        return configured("resnet20_cifar", **both, widths=[wide // 4, wide // 2, wide], layers=[deep, deep, deep])
    more = {"mixer": {"token_dim": wide // 2}, "vit": {"heads": 4}, "gmlp": {}}[family]
    hidden = (6 if family == "gmlp" else 4) * wide
    return configured(f"{family}_nano_p4_32", **both, dim=wide, depth=deep, hidden_dim=hidden, **more)


def measure(family: str, size: dict[str, int]) -> dict[str, float]:
    """Seconds and bytes of a training step, and its multiply-adds by formula."""
    config, batch = shape(family, size), size["batch"]
    network = build(config).train()
    optimiser = torch.optim.AdamW(network.parameters(), fused=True)
    images = torch.randn(batch, 3, *config.img_size)
    targets = torch.randint(0, size["classes"], (batch,))

    def step() -> None:
        F.cross_entropy(network(images), targets).backward()
        optimiser.step()
        optimiser.zero_grad()

    weights = sum(p.numel() for p in network.parameters())
    with kept_for_backward(apart=network.parameters()) as kept:
        network(images)
    return {
        "seconds": median_time(step),
        "bytes": sum(kept.values()) + 16 * weights,
        "macs": total_macs(config) * batch,
    }


def median_time(work: Callable[[], object]) -> float:
    """Seconds of a call, after one to warm up."""
    work()
    found: list[float] = []
    while len(found) < FEWEST or (sum(found) < ENOUGH and len(found) < MOST):
        started = time.perf_counter()
        work()
        found.append(time.perf_counter() - started)
    return statistics.median(found)


def epoch(rows: int) -> dict[str, float]:
    """Seconds of all batches of an epoch of images with crops and flips, and bytes of the images."""
    import weft
    from weft.data import AugmentConfig, batches

    noise = np.random.default_rng(0)
    images = noise.integers(0, 256, (rows, 3, 32, 32), dtype=np.uint8)
    source = weft.open_source(images, noise.integers(0, 10, rows), val_fraction=0.1, test_fraction=0.1)
    loader = batches(source, "train", 16, augment=AugmentConfig(crop_padding=4, flip=True))
    taken = median_time(lambda: list(loader.range(0, loader.steps_per_epoch)))
    return {"seconds": taken, "bytes": images.nbytes, "macs": rows}


def run(threads: int) -> None:
    """Everything that has not been measured yet."""
    torch.set_num_threads(threads)
    keep_freed_memory()
    known = (
        json.loads(FILE.read_text()) if FILE.is_file() else {"processor": cpu_model(), "threads": threads, "points": {}}
    )
    wanted: dict[str, Callable[[], dict[str, float]]] = {
        f"{family} {what} {value}": lambda f=family, w=what, v=value: measure(f, {**START, w: v})  # type: ignore[misc]
        for what, values in GROWING.items()
        for family in FAMILIES
        for value in values
    }
    wanted |= {f"batches rows {rows}": lambda rows=rows: epoch(rows) for rows in ROWS}  # type: ignore[misc]
    for key, work in wanted.items():
        if key not in known["points"]:
            known["points"][key] = work()
            print(key, known["points"][key], flush=True)
            FILE.write_text(json.dumps(known, indent=1) + "\n")


def slope(xs: list[float], ys: list[float]) -> float:
    """Of a straight line through the logarithms of the larger half."""
    half = len(xs) // 2
    found = np.polyfit(np.log(xs[half:]), np.log(ys[half:]), 1)
    return float(found[0])


def draw() -> None:
    """The page, with a chart that has a panel a quantity."""
    known = json.loads(FILE.read_text())
    lines = [
        "# How cost grows",
        "",
        f"`python benchmarks/growth.py run --threads {known['threads']}` on {known['processor']}: one quantity grows",
        f"by two decades, the others stay at {', '.join(f'{what} {value}' for what, value in START.items())}.",
        "Exponents of growth over the larger half of the values.",
        "",
        "![Seconds of a training step as each quantity grows](growth.svg)",
        "",
        "| growing | network | time | multiply-adds, by formula | memory |",
        "|---|---|---|---|---|",
    ]
    panels = []
    for what, values in {**GROWING, "rows": ROWS}.items():
        families = ("batches",) if what == "rows" else FAMILIES
        found = {family: [known["points"][f"{family} {what} {value}"] for value in values] for family in families}
        for family, points in found.items():
            slopes = (slope(values, [point[name] for point in points]) for name in ("seconds", "macs", "bytes"))  # type: ignore[arg-type]
            lines.append(f"| {what} | {family} | {' | '.join(f'{number:.2f}' for number in slopes)} |")
        series = {family: (values, [point["seconds"] for point in points]) for family, points in found.items()}
        panels.append(
            curves(series, (what, "seconds"), f"seconds as {what} grow", log=(True, True), dots=True, whole=True)
        )
    (RESULTS / "growth.svg").write_text(standalone(grid(panels)))
    (RESULTS / "growth.md").write_text("\n".join(lines) + "\n")


def grid(panels: list[str], columns: int = 2) -> str:
    """Pictures side by side in one."""
    boxes = [tuple(map(float, panel.partition('viewBox="0 0 ')[2].partition('"')[0].split())) for panel in panels]
    wide, high = max(box[0] for box in boxes), max(box[1] for box in boxes)
    placed = "".join(
        panel.replace(
            "<svg ",
            f'<svg x="{number % columns * wide}" y="{number // columns * high}" width="{box[0]}" height="{box[1]}" ',
            1,
        )
        for number, (panel, box) in enumerate(zip(panels, boxes, strict=True))
    )
    total = f'viewBox="0 0 {columns * wide:.0f} {-(-len(panels) // columns) * high:.0f}"'
    return f'<svg class="chart" {total} role="img" aria-label="how the cost of a training step grows">{placed}</svg>'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "draw"))
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    if asked.what == "run":
        run(asked.threads)
    draw()


if __name__ == "__main__":
    main()
