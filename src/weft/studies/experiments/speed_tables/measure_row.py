"""One row of the tables on this machine: what its network needs, and how fast one core runs and trains it.

What is timed is a forward pass without gradients, and a forward and a backward pass; the optimiser's step, which is a
small part, is left out. A batch is as large as about 20 G multiply-adds, one to eight images. Before anything is
allocated the network is laid out on the meta device, which tells what it will need; what does not fit is not built.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch.nn import functional as F

from weft import __version__, machine
from weft.networks.config import NetworkConfig
from weft.networks.measure.cost import total_macs, total_parameters
from weft.networks.measure.description import activation_bytes, example_input
from weft.networks.registry import build
from weft.nn.initialisation import seeded
from weft.studies.experiments.speed_tables.published_rows import SpeedRow
from weft.training.run.memory import MARGIN, gigabytes
from weft.training.storage.record import commit

BATCH_MACS, LARGEST = 20e9, 8
REPEATS, FEW, SLOW = 5, 4, 10.0  # timings of a row; of one whose call takes longer than so many seconds
MOMENT = 0.3  # seconds that a timing takes at least: a short call is repeated
PASSING = 0.25  # share of the activations, at most, that is alive in a forward pass without gradients


@dataclass(frozen=True)
class Timed:
    """One of the two uses of a network."""

    side: int
    batch: int
    macs: int
    """multiply-adds of an image"""
    need: int
    """bytes, as predicted"""
    seconds: list[float] = field(default_factory=list)
    """of an image, timing by timing; none where it does not fit"""
    memory: int = 0
    """bytes that it took at its peak"""
    left_out: str = ""
    """why it was not timed"""


@dataclass(frozen=True)
class MeasuredRow:
    """What was found, as the row's file keeps it."""

    name: str
    network: str
    scale: str
    parameters: int
    """of the published network, and its multiply-adds in use, whatever stands for it"""
    macs: int
    use: Timed
    training: Timed
    seconds: float
    """that all of it took"""
    environment: dict[str, str | int | None]


def measure_row(row: SpeedRow, scale: str, repeats: int = REPEATS) -> MeasuredRow:
    """Time a row on one thread."""
    started = time.perf_counter()
    torch.set_num_threads(1)
    smoke = scale == "smoke"
    use, learning = row.used(smoke), row.learning(smoke)
    return MeasuredRow(
        name=row.title,
        network=row.small if smoke else row.network,
        scale=scale,
        parameters=total_parameters(row.learning(False)),
        macs=total_macs(row.used(False)),
        use=timed_use(use, training=False, repeats=repeats),
        training=timed_use(learning, training=True, repeats=repeats),
        seconds=time.perf_counter() - started,
        environment=environment(),
    )


def plan_row(row: SpeedRow, scale: str) -> list[str]:
    """What a row will need, before anything is allocated."""
    smoke, free = scale == "smoke", machine.memory_available()
    uses = {"in use": prediction(row.used(smoke), False), "in training": prediction(row.learning(smoke), True)}
    parts = [f"{gigabytes(use.need)} {what} at {use.side} px" for what, use in uses.items()]
    large = [what for what, use in uses.items() if use.need > free]
    told = f"; {gigabytes(free)} are free: not timed {' and '.join(large)}, counted on the meta device alone"
    return [f"{row.title}: {', '.join(parts)}{told if large else ''}"]


def environment() -> dict[str, str | int | None]:
    """Where it was measured."""
    return {
        "weft": __version__, "commit": commit(), "torch": torch.__version__, "processor": machine.cpu_model(),
        "cores": machine.cores(), "threads": 1,
    }  # fmt: skip


def prediction(config: NetworkConfig, training: bool) -> Timed:
    """Batch and need of a use, from the network on the meta device."""
    macs = total_macs(config)
    batch = int(max(1, min(LARGEST, BATCH_MACS // macs)))
    weights = 4 * total_parameters(config)
    with torch.device("meta"):
        example = example_input(config)
        kept = activation_bytes(build(config), example)
    need = 2 * weights + MARGIN * batch * kept if training else weights + PASSING * batch * kept
    return Timed(example.shape[-1], batch, macs, int(need))


def timed_use(config: NetworkConfig, training: bool, repeats: int) -> Timed:
    """Seconds of an image and the peak of memory, or why there are none."""
    found, free = prediction(config, training), machine.memory_available()
    if found.need > free:
        return replace(found, left_out=f"it needs {gigabytes(found.need)} and {gigabytes(free)} are free")
    before = machine.memory_resident()
    machine.forget_peak()
    with seeded(0):
        network = build(config).train(training)
        images = torch.randn(found.batch, *example_input(config).shape[1:])

    def use() -> None:
        with torch.inference_mode():
            network(images)

    def learn() -> None:
        network.zero_grad(set_to_none=True)
        outputs = network(images)
        F.cross_entropy(outputs, torch.zeros(len(images), dtype=torch.int64)).backward()

    seconds = timings(learn if training else use, repeats)
    peak = max(0, machine.memory_peak() - before)
    return replace(found, seconds=[value / found.batch for value in seconds], memory=peak)


def timings(call: Callable[[], None], repeats: int) -> list[float]:
    """Seconds of a call, several times, after one that pays for allocation; of a slow one that is no part of it, so the
    first counts, and there are fewer."""
    first = timed(call, 1)
    if first > SLOW:
        return [first, *(timed(call, 1) for _ in range(min(FEW, repeats) - 1))]
    rounds = max(1, int(MOMENT / max(first, 1e-6)))
    return [timed(call, rounds) for _ in range(repeats)]


def timed(call: Callable[[], None], rounds: int) -> float:
    started = time.perf_counter()
    for _ in range(rounds):
        call()
    return (time.perf_counter() - started) / rounds
