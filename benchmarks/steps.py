"""A training step of weft against timm's same network, each in a process of its own as each would run here.

    python benchmarks/steps.py [--threads 2] [--rounds 9] [--only mixer]

The step is the whole one: forward pass, loss, backward pass, clipping, AdamW. weft's is that of `weft train`, with the
settings of its process (the C library keeps freed memory); timm's is a plain loop with timm's optimiser. Both also run
in bf16 (autocast), which weft chooses by itself in runs of minutes where it is faster. Contestants take turns; a ratio
is the median over rounds of timm's time over weft's (above 1: weft is faster).
Needs timm and torchvision without their dependencies (tests/oracles.txt).
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from networks import CASES, Case, timm
from weft.data.config import TransformConfig
from weft.training.config import ExecutionConfig, OptimisationConfig, RunConfig
from weft.training.loop.display import Silent
from weft.training.loop.loop import update
from weft.training.loop.progress import Progress
from weft.training.run.distributed import SingleProcess
from weft.training.run.inputs import open_inputs
from weft.training.run.lifecycle import assemble
from weft.training.storage.run_folder import RunFolder

import_module("timm.optim")
CONTESTANTS = ("timm", "weft", "timm, bf16", "weft, bf16")
CLASSES = 10


def write_images(folder: Path, count: int, side: int) -> Path:
    """A folder of noise, with enough images of ten classes for a batch."""
    from PIL import Image

    generator = np.random.default_rng(0)
    for number in range(count):
        path = folder / str(number % CLASSES) / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(generator.integers(0, 256, (side, side, 3), dtype=np.uint8)).save(path)
    return folder


def weft_step(case: Case, images: Path, folder: Path, threads: int, narrow: bool) -> Callable[[], object]:
    """One step of `weft train`."""
    name, batch, side, *_ = case
    config = RunConfig(
        source=str(images),
        model=name.split()[0],
        transform=TransformConfig(img_size=side),
        optimisation=OptimisationConfig(batch_size=batch, lr=1e-3),
        execution=ExecutionConfig(threads=threads, compile=False),
    )
    folder.mkdir()
    team = SingleProcess()
    run = assemble(RunFolder(folder), config, None, team, open_inputs(config), Silent())
    if narrow:
        team.use("bf16")
    first, progress = run.train[0], Progress()
    return lambda: update(run, first, 0, progress.scaling)


def timm_step(case: Case, narrow: bool) -> Callable[[], object]:
    """One step of a plain loop."""
    _, batch, side, _, build = case
    torch.manual_seed(0)
    network = build()
    optimiser = timm.optim.create_optimizer_v2(network, opt="adamw", lr=1e-3, weight_decay=0.05)
    images, targets = torch.randn(batch, 3, side, side), torch.randint(0, CLASSES, (batch,))

    def step() -> None:
        network.train()
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            loss = F.cross_entropy(network(images), targets)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()

    return step


def play(connection: Connection, number: int, name: str, images: Path, scratch: Path, threads: int) -> None:
    """A contestant's process: the seconds of a step, each time that it is asked."""
    torch.set_num_threads(threads)
    case, narrow = CASES[number], name.endswith("bf16")
    step = timm_step(case, narrow) if name.startswith("timm") else weft_step(case, images, scratch, threads, narrow)
    torch.set_num_threads(threads)
    step()
    connection.send("ready")
    while connection.recv():
        began = time.perf_counter()
        step()
        connection.send(time.perf_counter() - began)


def contest(number: int, arguments: argparse.Namespace, scratch: Path) -> dict[str, list[float]]:
    """The seconds of each contestant in each round; the first round does not count."""
    _, batch, side, *_ = CASES[number]
    images = write_images(scratch / "images", 3 * batch + 10 * CLASSES, side)
    context, lines = multiprocessing.get_context("spawn"), {}
    for name in CONTESTANTS:
        lines[name], theirs = context.Pipe()
        work = (theirs, number, name, images, scratch / name, arguments.threads)
        context.Process(target=play, args=work, daemon=True).start()
        assert lines[name].recv() == "ready"
    times: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    for _ in range(arguments.rounds + 1):
        for name, line in lines.items():
            line.send(True)
            times[name].append(line.recv())
    for line in lines.values():
        line.send(False)
    return {name: found[1:] for name, found in times.items()}


def ratio(theirs: list[float], ours: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(theirs, ours, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="measure the networks with this in their names")
    arguments = parser.parse_args()
    print(
        f"torch {torch.__version__}, timm {timm.__version__}, {arguments.threads} threads, {arguments.rounds} rounds\n"
    )
    print("| network | batch | float32 both | bf16 both | timm float32, weft as it runs here | images/s of weft |")
    print("|---|---|---|---|---|---|")
    found = []
    for number, (name, batch, *_) in enumerate(CASES):
        if arguments.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            times = contest(number, arguments, Path(folder))
        chosen = min(("weft", "weft, bf16"), key=lambda own: statistics.median(times[own]))
        plain, narrow = (ratio(times[f"timm{form}"], times[f"weft{form}"]) for form in ("", ", bf16"))
        found.append(ratio(times["timm"], times[chosen]))
        speed = batch / statistics.median(times[chosen])
        form = "bf16" if chosen.endswith("bf16") else "float32"
        print(
            f"| {name} | {batch} | {plain:.2f} | {narrow:.2f} | {found[-1]:.2f} ({form}) | {speed:,.0f} |", flush=True
        )
    print(f"\nmean of the last ratio {statistics.fmean(found):.2f}, least {min(found):.2f}")


if __name__ == "__main__":
    main()
