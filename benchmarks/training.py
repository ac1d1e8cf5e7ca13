"""One training step, and training end to end, against timm: network, dataset, transforms, loader and a plain loop.

    python benchmarks/training.py CIFAR10_FOLDER [--threads 2] [--rounds 9] [--steps 20]

The network is Mixer P4 C128 D_S64 D_C512 L8 with AdamW at batch 128. Contestants take turns for `steps` steps a
round; a ratio is the median over rounds of timm's time over weft's (above 1: weft is faster). timm reads the same
images from a folder of PNG files, with 0 and with 2 workers; the better one counts. The share of the peak is 3 × 2 ×
multiply-adds × images per second over what a large product of matrices reaches in the same run.
Needs timm and torchvision without their dependencies (tests/oracles.txt).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from weft.data.config import AugmentConfig
from weft.networks.formulas import total_macs
from weft.training.config import ExecutionConfig, OptimisationConfig, RunConfig
from weft.training.course import waiting
from weft.training.display import Silent
from weft.training.fabric import Alone
from weft.training.folder import RunFolder
from weft.training.loop import update
from weft.training.prepare import gather
from weft.training.run import Run
from weft.training.session import assemble
from weft.training.state import Progress

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from oracles import import_timm

timm = import_timm()
import_module("timm.optim")
BATCH = 128
IMAGES = 10_000  # training images that timm finds as files: enough for many rounds


def weft_run(source: Path, opt: str, folder: Path, threads: int) -> Run:
    """What `weft train` would work with, at step 0."""
    config = RunConfig(
        source=str(source),
        model="mixer_nano_p4_32",
        augment=AugmentConfig(crop_padding=4, flip=True),
        optimisation=OptimisationConfig(batch_size=BATCH, opt=opt, lr=1e-3),  # type: ignore[arg-type]
        execution=ExecutionConfig(threads=threads),
    )
    folder.mkdir()
    return assemble(RunFolder(folder), config, None, Alone(), gather(config), Silent())


def timm_network() -> tuple[nn.Module, torch.optim.Optimizer]:
    """timm's same network with its own choice of optimiser groups."""
    torch.manual_seed(0)
    net = timm.models.mlp_mixer.MlpMixer(
        num_classes=10, img_size=32, patch_size=4, num_blocks=8, embed_dim=128, mlp_ratio=(0.5, 4.0)
    )
    return net, timm.optim.create_optimizer_v2(net, opt="adamw", lr=1e-3, weight_decay=0.05)


def plain_step(net: nn.Module, optimiser: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> None:
    """The step of a plain loop, with clipping as weft has by default."""
    net.train()
    loss = F.cross_entropy(net(x), y)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimiser.step()


def image_folder(run: Run, root: Path) -> Path:
    """Training images as PNG files, a folder a class, for timm's dataset."""
    from PIL import Image

    split = run.train.split
    raws, targets = split.read(torch.arange(min(IMAGES, len(split))).numpy())
    for number, (raw, target) in enumerate(zip(raws, targets, strict=True)):
        path = root / str(int(target)) / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(raw, bytes):
            path.write_bytes(raw)
        else:
            Image.fromarray(raw.transpose(1, 2, 0)).save(path)
    return root


def timm_batches(root: Path, workers: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Endless batches of timm's dataset, transforms (crop, flip) and loader."""
    dataset = timm.data.create_dataset("", root=str(root), split="", is_training=True)
    loader = timm.data.create_loader(
        dataset,
        input_size=(3, 32, 32),
        batch_size=BATCH,
        is_training=True,
        train_crop_mode="rkrc",
        color_jitter=0.0,
        num_workers=workers,
        persistent_workers=workers > 0,
        use_prefetcher=False,
        device=torch.device("cpu"),
    )
    while True:
        yield from loader


def interleaved(contestants: dict[str, Callable[[], Any]], rounds: int, steps: int) -> dict[str, list[float]]:
    """Seconds a step of each contestant in each round; they take turns, the first round does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds + 1):
        for name, step in contestants.items():
            started = time.perf_counter()
            for _ in range(steps):
                step()
            seconds[name].append((time.perf_counter() - started) / steps)
    return {name: times[1:] for name, times in seconds.items()}


def ratio(slow: list[float], fast: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(slow, fast, strict=True))


def matmul_peak(size: int = 1024, repeats: int = 10) -> float:
    """Floating-point operations per second of a product of large matrices."""
    x = torch.randn(size, size)
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        x @ x
        times.append(time.perf_counter() - started)
    return 2 * size**3 / min(times)


def one_step(runs: dict[str, Run], rounds: int, steps: int) -> None:
    """The step alone, on one batch that is already there."""
    batch = runs["adamw"].train[0]
    net, optimiser = timm_network()
    contestants: dict[str, Callable[[], Any]] = {
        "timm": lambda: plain_step(net, optimiser, batch.inputs["x"], batch.targets),
        "adamw": lambda: update(runs["adamw"], batch, 0),
        "muon": lambda: update(runs["muon"], batch, 0),
    }
    peak = matmul_peak()
    times = interleaved(contestants, rounds, steps)
    peak = max(peak, matmul_peak())
    operations = 3 * 2 * total_macs(runs["adamw"].core.config) * BATCH  # type: ignore[arg-type]
    print("| step | ms | share of peak |\n|---|---|---|")
    for name, found in times.items():
        middle = statistics.median(found)
        print(f"| {name} | {1000 * middle:.1f} | {operations / middle / peak:.2f} |")
    print(f"\nratio to timm {ratio(times['timm'], times['adamw']):.2f}; Muon takes ", end="")
    print(f"{100 * (ratio(times['muon'], times['adamw']) - 1):.0f} % more time than AdamW\n")


def end_to_end(run: Run, root: Path, rounds: int, steps: int) -> None:
    """Batches and steps together."""
    net, optimiser = timm_network()
    progress = Progress()
    ours = waiting(run.train.range(0, 10**9), progress)
    theirs = {f"timm, {workers} workers": timm_batches(root, workers) for workers in (0, 2)}
    contestants: dict[str, Callable[[], Any]] = {
        name: lambda source=source: plain_step(net, optimiser, *next(source)) for name, source in theirs.items()
    }
    contestants["weft"] = lambda: update(run, next(ours), 0)
    times = interleaved(contestants, rounds, steps)
    total = (rounds + 1) * steps * statistics.mean(times["weft"])
    print("| end to end | images/s |\n|---|---|")
    for name, found in times.items():
        print(f"| {name} | {BATCH / statistics.median(found):,.0f} |")
    best = min((times[name] for name in theirs), key=statistics.median)
    print(f"\nratio to the better timm {ratio(best, times['weft']):.2f}; ", end="")
    print(f"{100 * progress.waited / total:.1f} % of the time is spent waiting for data")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("source", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        runs = {
            name: weft_run(arguments.source, name, Path(folder) / name, arguments.threads) for name in ("adamw", "muon")
        }
        one_step(runs, arguments.rounds, arguments.steps)
        fresh = replace(runs["adamw"])
        end_to_end(fresh, image_folder(fresh, Path(folder) / "images"), arguments.rounds, arguments.steps)


if __name__ == "__main__":
    main()
