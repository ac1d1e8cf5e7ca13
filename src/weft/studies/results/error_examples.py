"""Examples that the best candidate gets wrong, with their pictures or words, kept beside the runs for the report."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weft.disk import Damaged, write_json
from weft.studies.engine import tasks
from weft.studies.engine.runner import Pool
from weft.studies.engine.study import Study, read_whole
from weft.studies.results.folds import joined
from weft.studies.results.load import Result, collect, validation_metric
from weft.training.config import RunConfig

FILE = "mistakes.json"
MOST = 12


@dataclass(frozen=True)
class Example:
    """A mistake, besides its picture or its words."""

    target: int
    predicted: int
    confidence: float
    wrong: int
    of: int


@dataclass(frozen=True)
class Kept:
    """The shape of mistakes.json."""

    candidate: str
    examples: list[Example]
    seed: int | None = None


def keep_mistakes(study: Study, pool: Pool) -> None:
    """Write mistakes.json: what the best candidate by validation gets wrong, the commonest mistakes of all first."""
    every = joined(collect(study.folder).results)
    done = [result for result in every if result.finished and result.share == 1]
    if not done or study.facts.task == "regression":
        return
    chosen = max(done, key=validation_metric)
    numbers = common_mistakes(chosen, done)
    of_folds = (chosen.predictions or {}).get("row")
    rows = numbers if of_folds is None else of_folds[numbers]
    config = min((job.labelled for job in study.jobs), key=lambda config: bool(getattr(config, "start", "")))
    shown = pool.first(
        tasks.examples_for_page,
        RunConfig(source=config.source, reading=config.reading, transform=config.transform),
        [int(row) for row in rows],
    )
    write_json(study.folder / FILE, {"candidate": chosen.candidate, "seed": chosen.seed, "examples": [
        {**about(chosen, done, row), **example} for row, example in zip(numbers, shown, strict=True)
    ]})  # fmt: skip


def common_mistakes(chosen: Result, every: list[Result]) -> list[int]:
    """Numbers of the examples that `chosen` gets wrong, those that most runs get wrong first."""
    wrong = np.mean([miss(result) for result in every], axis=0)
    own = np.flatnonzero(miss(chosen))
    return [int(row) for row in own[np.argsort(-wrong[own], kind="stable")][:MOST]]


def miss(result: Result) -> Any:
    assert result.predictions is not None
    return result.predictions["predicted"] != result.predictions["target"]


def about(chosen: Result, every: list[Result], row: int) -> dict[str, Any]:
    """Truth, answer, confidence, and how many runs got it wrong."""
    assert chosen.predictions is not None
    found = {name: chosen.predictions[name][row].item() for name in ("target", "predicted", "confidence")}
    return {**found, "wrong": sum(bool(miss(result)[row]) for result in every), "of": len(every)}


def read_examples(config: RunConfig, rows: list[int]) -> list[dict[str, str]]:
    """Examples of the test split for a page: a picture as a data address, or the words, and where it is from.

    Of a source that is cut into folds they are numbered by their rows in all of them.
    """
    from weft.data.open.splits import MemorySplit
    from weft.data.transform.transforms import ImageTransform
    from weft.studies.engine.data_facts import data_of

    source, transform = data_of(config)
    split = source.splits["test"]
    if config.reading.folds is not None and isinstance(split, MemorySplit):
        whole = np.arange(len(split.table))
        split = MemorySplit(split.table, whole, whole, split.origin)
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


def read_mistakes(folder: Path) -> dict[str, Any]:
    """What `keep_mistakes` wrote, or nothing."""
    try:
        return read_whole(folder / FILE, Kept, "")
    except Damaged:
        return {"candidate": "", "examples": []}
