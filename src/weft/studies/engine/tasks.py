"""What a worker process of a study does: look at a source, time a step, carry out a run, measure inference.

Each is a plain function of plain arguments; `worker.serve` calls them by name. Data that was opened for one run is
kept for the next.
"""

from __future__ import annotations

import base64
import io
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from weft import machine
from weft.data.batch.loader import batches
from weft.data.transform.transforms import ImageTransform, TextTransform
from weft.studies.compare.baselines import run_baseline
from weft.studies.compare.candidates import CLASSICAL
from weft.studies.engine.data_facts import data_of
from weft.studies.engine.data_facts import look as look
from weft.studies.results.inference_speed import Inference, read_inference
from weft.training.config import RunConfig
from weft.training.distributed import join
from weft.training.inference.network_folder import read_network
from weft.training.loop.display import Plain, Silent
from weft.training.loop.evaluation import outputs_of
from weft.training.loop.events import TrainingFailed
from weft.training.metrics import headline
from weft.training.run import lifecycle, probe
from weft.training.run.context import Run
from weft.training.run.inputs import open_inputs
from weft.training.run.kinds import AnyConfig
from weft.training.run.plan import Plan
from weft.training.storage.run_folder import RunBusy, RunFolder, open_run

HELD = 3.0  # seconds to wait for a run that another process has: a dead study's worker frees it within one
MEASURE_SECONDS = 0.6  # of steps for a choice of schedule: enough for a ratio within some percent


def step_seconds(config: AnyConfig, threads: int) -> float:
    """Mean seconds of a training step on so many threads, measured for a moment; nothing is kept."""
    with trial_run(config, threads) as run:
        return median_step(run, MEASURE_SECONDS)


def run_seconds(config: AnyConfig, threads: int, duration: float) -> tuple[float, float]:
    """Seconds of a training step and of an evaluation on the validation split, measured for a `duration`."""
    with trial_run(config, threads) as run:
        step = median_step(run, duration)
        each = min(probe.timed(lambda: probe.evaluate_once(run)) for _ in range(2))  # the first pays for allocation
        return step, each * len(run.validation or ())


@contextmanager
def trial_run(config: AnyConfig, threads: int) -> Iterator[Run]:
    """A run that leaves nothing behind, for timing."""
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as path:
        materials = open_inputs(config, None, data_of(config))
        team = join("cpu", "auto")
        run = lifecycle.assemble(RunFolder(Path(path)), config, None, team, materials, Silent())
        torch.set_num_threads(threads)
        yield run


def median_step(run: Run, duration: float) -> float:
    """Median over groups of steps, so that a moment's disturbance does not count."""
    probe.mean_step(run, run.plan.precision, steps=1, skipped=1)
    times: list[float] = []
    started = time.perf_counter()
    while time.perf_counter() - started < duration:
        times.append(probe.mean_step(run, run.plan.precision, steps=4, skipped=1))
    return float(np.median(times))


def carry_out(config: AnyConfig, path: Path, known: Plan | None = None) -> str:
    """Start or continue the run in `path`. Returns finished, failed or interrupted; the record tells more.

    `held` is the answer where another process has the run. `known` is a plan that was measured for such a run before.
    """
    if not is_free(path):
        return "held"
    opened = data_of(config)
    machine.forget_peak()
    if config.model in CLASSICAL.values():
        assert isinstance(config, RunConfig)
        run_baseline(config, path, *opened)
        return "finished"
    try:
        if (path / "run.yaml").is_file():
            outcome = lifecycle.resume(path, Plain(), config.execution, opened)
        else:
            outcome = lifecycle.start(config, path, Plain(), opened, known)
    except TrainingFailed:
        return "failed"
    except RunBusy:
        return "held"
    return "interrupted" if outcome.record is None else str(outcome.record["status"])


def is_free(path: Path) -> bool:
    """Whether no other process trains in the folder, or the one that does is about to end."""
    if not (path / "run.yaml").is_file():
        return True
    try:
        with RunFolder(path).lock(HELD):
            return True
    except RunBusy:
        return False


@torch.no_grad()
def inference(path: Path) -> Inference:
    """Examples a second on one thread in batches of 64, seconds for one, tokens of a text; kept in the folder."""
    if (stored := read_inference(path)) is not None:
        return stored
    config = open_run(path).labelled()
    source, transform = data_of(config)
    _, network, _ = read_network(path)
    network.eval()
    torch.set_num_threads(1)
    small = RunConfig(source=config.source, model=config.model, network=config.network, transform=config.transform)
    materials = open_inputs(small, None, (source, transform))
    batch = materials.batches("test")[0]
    batch_inputs = {name: value[:64] for name, value in batch.inputs.items()}
    one = {name: value[:1] for name, value in batch.inputs.items()}
    seconds = quickest(lambda: network(**batch_inputs), 5)
    found = Inference(
        throughput=len(batch_inputs["x"]) / seconds,
        latency=quickest(lambda: network(**one), 20),
        tokens=mean_tokens(materials.batches("train")) if isinstance(transform, TextTransform) else None,
    )
    found.save(path)
    return found


def quickest(action: Any, repeats: int) -> float:
    """Median seconds of a call, after one to warm up."""
    action()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def mean_tokens(batches: Any, count: int = 8) -> float:
    """Tokens of a text, padding left out, over a few batches."""
    masks = [batches[step].inputs["mask"] for step in range(min(count, len(batches)))]
    return float(sum(int(mask.sum()) for mask in masks) / sum(len(mask) for mask in masks))


def ready() -> int:
    """Nothing but the answer that this process has loaded what it needs; its number."""
    return os.getpid()


def show(config: RunConfig, rows: list[int]) -> list[dict[str, str]]:
    """Examples of the test split for a page: a picture as a data address, or the words, and where it is from."""
    source, transform = data_of(config)
    split = source.splits["test"]
    raws, _ = split.read(np.array(rows, dtype=np.int64))
    found = []
    for row, raw in zip(rows, raws, strict=True):
        place = split.place(row)
        if isinstance(transform, ImageTransform):
            found.append({"picture": data_address(transform.pixels(raw).numpy()), "place": place})
        else:
            words = " / ".join(raw) if isinstance(raw, tuple | list) else str(raw)
            found.append({"text": words[:300], "place": place})
    return found


def data_address(pixels: np.ndarray) -> str:
    """A picture (channels, height, width) of bytes as a PNG that stands in the page itself."""
    from PIL import Image

    image = Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0))
    image.thumbnail((96, 96))
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def accuracy_on(path: Path, split: str) -> float:
    """Accuracy of a run's network on a split of its own source, its share of the rows alone."""
    config = open_run(path).labelled()
    source, transform = data_of(config)
    _, network, _ = read_network(path)
    loader = batches(source, split, batch_size=256, transform=transform, train=False)
    outputs, targets = outputs_of(network, loader)
    return headline(source.task, outputs, targets)


def tune(address: str, name: str, config: RunConfig, space: list[str], total: int, folder: Path) -> int:
    """Trials of a search, until it has enough; returns how many this worker did."""
    from weft.studies.tune.worker_loop import search

    torch.set_num_threads(config.execution.threads or 1)
    return search(address, name, config, space, total, folder, data_of(config))
