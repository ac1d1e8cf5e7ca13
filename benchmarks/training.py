"""One training step, and training end to end, against timm: network, dataset, transforms, loader and a plain loop.

    python benchmarks/training.py CIFAR10_FOLDER [--threads 2] [--rounds 9] [--steps 20]

The network is Mixer P4 C128 D_S64 D_C512 L8 with AdamW at batch 128. Every contestant has a process of its own, so that
neither inherits what the other told the C library; they take turns for `steps` steps a round. A ratio is the median
over rounds of timm's time over weft's (above 1: weft is faster); "compiled" is `--compile`, which weft chooses by
itself where it pays, and torch.compile on timm's network. timm reads the same images from a folder of PNG files,
with 0 and with 2 workers; the better one counts. The share of the peak is 3 × 2 × multiply-adds × images per second
over what products of large matrices reach: in their own turn of the same round, as long as a step takes (median over
rounds), and at the best moment of the whole run.
Needs timm and torchvision without their dependencies (tests/oracles.txt).
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from weft import machine
from weft.data.batch.loader import Batches
from weft.data.config import AugmentConfig
from weft.networks.measure.cost import total_macs
from weft.networks.registry import configured
from weft.training.config import ExecutionConfig, OptimisationConfig, RunConfig
from weft.training.loop.display import Silent
from weft.training.loop.events import waiting
from weft.training.loop.loop import update
from weft.training.loop.progress import Progress
from weft.training.run.context import Run
from weft.training.run.distributed import SingleProcess
from weft.training.run.inputs import open_inputs
from weft.training.run.lifecycle import assemble
from weft.training.storage.run_folder import RunFolder

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from oracles import import_timm

timm = import_timm()
import_module("timm.optim")
BATCH = 128
IMAGES = 10_000  # training images that timm finds as files: enough for many rounds


def configuration(source: Path, opt: str, threads: int) -> RunConfig:
    """What `weft train` would be asked."""
    return RunConfig(
        source=str(source),
        model="mixer_nano_p4_32",
        augment=AugmentConfig(crop_padding=4, flip=True),
        optimisation=OptimisationConfig(batch_size=BATCH, opt=opt, lr=1e-3),  # type: ignore[arg-type]
        execution=ExecutionConfig(threads=threads),
    )


def weft_run(config: RunConfig, folder: Path) -> Run:
    """What `weft train` would work with, at step 0."""
    folder.mkdir()
    return assemble(RunFolder(folder), config, None, SingleProcess(), open_inputs(config), Silent())


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


def image_folder(batches: Batches, root: Path) -> Path:
    """Training images as PNG files, a folder a class, for timm's dataset."""
    from PIL import Image

    split = batches.split
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


Step = Callable[[], Any]
STEPS = ("peak", "timm", "adamw", "muon", "timm, compiled", "adamw, compiled")  # contestants for one step
WHOLE = ("timm, 0 workers", "timm, 2 workers", "weft", "weft, compiled")  # and end to end
SIDE = 1024  # of the matrices whose product is the peak


def contestant(name: str, source: Path, scratch: Path, threads: int) -> tuple[Step, Progress]:
    """What a contestant does in one step, and where it notes how long it waited for data."""
    progress = Progress()
    if name == "peak":
        x = torch.randn(SIDE, SIDE)
        return (lambda: x @ x), progress
    config = configuration(source, "muon" if name == "muon" else "adamw", threads)
    if name.startswith("timm"):  # only weft's batches: its processes set up more than that
        return timm_contestant(name, open_inputs(config).batches("train"), scratch), progress
    run = weft_run(config, scratch / name)
    if name.endswith("compiled"):
        run.core.compile()
    batch, ours = run.train[0], waiting(run.train.range(0, 10**9), progress)
    return (lambda: update(run, next(ours) if name.startswith("weft") else batch, 0, progress.scaling)), progress


def timm_contestant(name: str, batches: Batches, scratch: Path) -> Step:
    """timm's step, on one batch or on those of its own loader."""
    net, optimiser = timm_network()
    if name.endswith("compiled"):
        net.compile()
    if "workers" not in name:
        batch = batches[0]
        return lambda: plain_step(net, optimiser, batch.inputs["x"], batch.targets)
    theirs = timm_batches(image_folder(batches, scratch / f"images of {name}"), int(name.split()[1]))
    return lambda: plain_step(net, optimiser, *next(theirs))


def play(connection: Connection, name: str, source: Path, scratch: Path, threads: int) -> None:
    """A contestant's process: on each number of steps answers seconds a step, seconds waited, and its peak memory."""
    torch.set_num_threads(threads)
    step, progress = contestant(name, source, scratch, threads)
    torch.set_num_threads(threads)
    connection.send("ready")
    while steps := connection.recv():
        started, waited = time.perf_counter(), progress.waited
        for _ in range(steps):
            step()
        taken = (time.perf_counter() - started) / steps
        peak = machine.memory_peak() / 2**20
        connection.send((taken, (progress.waited - waited) / steps, peak))


def contest(names: tuple[str, ...], arguments: argparse.Namespace, scratch: Path) -> dict[str, list[tuple[float, ...]]]:
    """What each contestant answered in each round; the first round does not count."""
    context = multiprocessing.get_context("spawn")
    lines: dict[str, Connection] = {}
    for name in names:
        lines[name], theirs = context.Pipe()
        work = (theirs, name, arguments.source, scratch, arguments.threads)
        context.Process(target=play, args=work, daemon="workers" not in name).start()
        assert lines[name].recv() == "ready"
    answers: dict[str, list[tuple[float, ...]]] = {name: [] for name in names}
    products = 1
    for _ in range(arguments.rounds + 1):
        for name, line in lines.items():
            line.send(products if name == "peak" else arguments.steps)
            answers[name].append(line.recv())
        if "peak" in names:  # as long as the steps of a round
            products = max(1, round(arguments.steps * answers["adamw"][-1][0] / answers["peak"][-1][0]))
    for line in lines.values():
        line.send(0)
    return {name: found[1:] for name, found in answers.items()}


def ratio(slow: list[float], fast: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(slow, fast, strict=True))


def one_step(arguments: argparse.Namespace, scratch: Path) -> None:
    """The step alone, on one batch that is already there."""
    found = contest(STEPS, arguments, scratch)
    times = {name: [answer[0] for answer in answers] for name, answers in found.items()}
    work = 3 * 2 * total_macs(configured("mixer_nano_p4_32")) * BATCH / (2 * SIDE**3)  # in large products
    print("| step | ms | share of peak, same round | of the best moment | peak memory, MB |\n|---|---|---|---|---|")
    for name in STEPS[1:]:
        share = work * ratio(times["peak"], times[name])
        best = work * min(times["peak"]) / statistics.median(times[name])
        memory = max(answer[2] for answer in found[name])
        print(f"| {name} | {1000 * statistics.median(times[name]):.1f} | {share:.2f} | {best:.2f} | {memory:.0f} |")
    both = [ratio(times["timm"], times[name]) for name in ("adamw", "adamw, compiled")]
    compiled = ratio(times["timm, compiled"], times["adamw, compiled"])
    print(f"\nratio to timm {both[0]:.2f}, compiled {both[1]:.2f} ({compiled:.2f} to timm compiled)", end="; ")
    print(f"Muon takes {100 * (ratio(times['muon'], times['adamw']) - 1):.0f} % more time than AdamW\n")


def end_to_end(arguments: argparse.Namespace, scratch: Path) -> None:
    """Batches and steps together."""
    found = contest(WHOLE, arguments, scratch)
    times = {name: [answer[0] for answer in answers] for name, answers in found.items()}
    print("| end to end | images/s |\n|---|---|")
    for name in WHOLE:
        print(f"| {name} | {BATCH / statistics.median(times[name]):,.0f} |")
    best = min((times[name] for name in WHOLE[:2]), key=statistics.median)
    waited = sum(answer[1] for answer in found["weft"]) / sum(times["weft"])
    both = [ratio(best, times[name]) for name in WHOLE[2:]]
    print(f"\nratio to the better timm {both[0]:.2f}, compiled {both[1]:.2f}; ", end="")
    print(f"{100 * waited:.1f} % of the time is spent waiting for data")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("source", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        one_step(arguments, Path(folder))
        end_to_end(arguments, Path(folder))


if __name__ == "__main__":
    main()
