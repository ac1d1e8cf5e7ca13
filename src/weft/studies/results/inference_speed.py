"""How fast a run's network is in use: measured once by a worker, and kept in its folder as inference.json."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weft.disk import Damaged, write_json
from weft.studies.engine.study import read_stored

FILE = "inference.json"
IMAGES, TEXTS = 64, 256  # of a batch; texts are cut into parts of like lengths
LONG = 1.0  # seconds of a call beside which warming up is nothing


@dataclass(frozen=True)
class Inference:
    """Examples a second in batches, seconds for one, the threads that it took, and the tokens of a mean text."""

    throughput: float
    latency: float
    threads: float = 1.0
    tokens: float | None = None

    def save(self, folder: Path) -> None:
        write_json(folder / FILE, asdict(self))


def read_inference(folder: Path) -> Inference | None:
    """What was measured of a run; None where nothing was, or where it is damaged and can be measured again."""
    try:
        return read_stored(folder / FILE, Inference, "")
    except Damaged:
        return None


def measure_inference(path: Path) -> Inference:
    """Examples a second on one thread in batches of 64, or texts of like lengths together, as they are in use; seconds
    for one, tokens of a text; kept in the folder."""
    import torch

    from weft.data.batch.loader import batches
    from weft.data.transform.transforms import TextTransform
    from weft.studies.engine.data_facts import data_of
    from weft.training.inference.network_folder import read_network
    from weft.training.run.inputs import open_inputs
    from weft.training.storage.run_folder import open_run

    if (stored := read_inference(path)) is not None:
        return stored
    config = open_run(path).labelled()
    source, transform = data_of(config)
    _, network, _ = read_network(path)
    network.eval()
    torch.set_num_threads(1)
    inputs = open_inputs(config, path, (source, transform))
    transform = inputs.transform
    texts = isinstance(transform, TextTransform)
    batch = batches(source, "test", TEXTS if texts else IMAGES, transform=transform)[0]  # ids also for an encoder below
    together = list(of_like_lengths(batch.inputs, transform.max_length)) if texts else [dict(batch.inputs)]
    one = {name: value[:1] for name, value in together[len(together) // 2].items()}

    def every() -> None:
        for part in together:
            network(**part)

    with torch.no_grad():
        seconds = median_seconds(every, 5)
        latency = median_seconds(lambda: network(**one), 20)
    found = Inference(
        throughput=len(batch.inputs["x"]) / seconds,
        latency=latency,
        tokens=mean_tokens(inputs.batches("train")) if texts else None,
    )
    found.save(path)
    return found


def of_like_lengths(inputs: Mapping[str, Any], longest: int) -> Iterator[dict[str, Any]]:
    """A batch of texts as parts of like lengths, with no more padding than these need."""
    from weft.data.batch.token_batches import bucket

    whole, widths = inputs["x"].shape[1], [bucket(int(count), longest) for count in inputs["mask"].sum(1)]
    for width in sorted(set(widths)):
        rows = [row for row, each in enumerate(widths) if each == width]
        yield {name: x[rows, :width] if x.shape[1:2] == (whole,) else x[rows] for name, x in inputs.items()}


def median_seconds(action: Any, repeats: int) -> float:
    """Median seconds of a call, after one to warm up; that one tells enough where it takes long."""
    times: list[float] = []
    for _ in range(1 + repeats):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
        if times[0] > LONG:
            return times[0]
    return float(np.median(times[1:]))


def mean_tokens(batches: Any, count: int = 8) -> float:
    """Tokens of a text, padding left out, over a few batches."""
    masks = [batches[step].inputs["mask"] for step in range(min(count, len(batches)))]
    return float(sum(int(mask.sum()) for mask in masks) / sum(len(mask) for mask in masks))
