"""Features of a trained network in the place of classical ones: what a comparison sets beside networks from scratch."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from weft.data.open.source import ROLES, Source
from weft.data.open.splits import spread
from weft.data.transform.transforms import ImageTransform, TextTransform
from weft.networks.measure.cost import total_macs, total_parameters
from weft.training.baseline import TRAINED_STRENGTHS, create
from weft.training.config import RunConfig
from weft.training.embeddings.store import of_one_length
from weft.training.features.folding import pooled
from weft.training.features.linear import Scale, one_thread
from weft.training.features.store import FrozenNetwork, features_of, read_together
from weft.training.finetuning.config import FinetuneConfig
from weft.training.finetuning.prepare import open_frozen

NOISE, STEPS_TIMED = 2048, 8  # rows, and steps of logistic regression on them, that tell how long it takes
USUAL_STEPS = (
    65  # of it on standardised features: 31, 59 and 103 for the three strengths, on made-up ones of ten classes
)
QUICKLY, ALIKE = 2.0, 4  # seconds that a few texts take, up to which they are timed again with as many of each length

Featurise = Callable[[Any], Any]


def trained_features(
    config: RunConfig, start: str, source: Source
) -> tuple[dict[str, Any], Featurise, tuple[int, int]]:
    """Standardised features of each role, the function from raw inputs to them, and the network's parameters and
    multiply-adds."""
    frozen, notes = frozen_of(config, start, source)
    for note in notes:
        print(note)
    found = {role: features_of(source, role, frozen).x for role in ROLES}
    scale = Scale.of(found["train"])

    def featurise(raws: Any) -> Any:
        with torch.inference_mode():
            return scale(of_raws(frozen, raws)).numpy()

    size = frozen.network.config
    return {role: scale(x).numpy() for role, x in found.items()}, featurise, (total_parameters(size), total_macs(size))


def frozen_of(config: RunConfig, start: str, source: Source) -> tuple[FrozenNetwork, list[str]]:
    """The trained network for the rows that a run reads, and what was decided on the way."""
    asked = FinetuneConfig(start=start, source=config.source, reading=config.reading, transform=config.transform)
    return open_frozen(asked, source)


def of_raws(frozen: FrozenNetwork, raws: Any) -> torch.Tensor:
    """Features of inputs as they are read from a source."""
    transform, network = frozen.transform, frozen.reader
    if isinstance(transform, ImageTransform):
        pixels = torch.stack([transform.pixels(raw) for raw in raws])
        return torch.cat([pooled(network, transform.normalize(part)) for part in pixels.split(32)])
    texts = transform.tokenizer.encode(list(raws), transform.max_length)
    batches = list(of_one_length(np.array([len(ids) for ids, _ in texts])))
    found = torch.cat([read_together(network, [texts[row] for row in batch]) for batch in batches])
    return found[np.argsort(np.concatenate(batches))]


def probe_seconds(
    config: RunConfig, start: str, source: Source, fitting: float | None = None, again: float = math.inf, rows: int = 24
) -> tuple[float, float]:
    """How long the features of one row take, from a few of them, and the regressions on them for a training row, unless
    that is known from larger images or longer texts. Texts that take less than `again` are timed with more of each
    length."""
    frozen, _ = frozen_of(config, start, source)
    raws, _ = source.splits["train"].read(spread(source.count("train"), rows))  # rows may be sorted, by length too

    def reading(several: Any) -> float:
        began = time.perf_counter()
        of_raws(frozen, several)
        return (time.perf_counter() - began) / len(several)

    with torch.inference_mode():
        of_raws(frozen, raws[:2])
        each = reading(raws)
        if isinstance(frozen.transform, TextTransform) and each * rows <= min(QUICKLY, again):
            each = min(each, reading([raw for raw in raws for _ in range(ALIKE)]))  # of one length, as many rows are
    if fitting is None:
        with one_thread():
            fitting = fitting_seconds(frozen.network.head_inputs, source)
    return each, fitting


def fitting_seconds(width: int, source: Source) -> float:
    """About how long the regressions on so many features take for a training row, from some steps on noise."""
    numbers, regression = np.random.default_rng(0), source.task == "regression"
    rows = max(NOISE, width if regression else len(source.classes))
    features = numbers.standard_normal((rows, width), dtype=np.float32)
    targets = numbers.standard_normal(rows) if regression else np.arange(rows) % max(2, len(source.classes))

    def fit(steps: int) -> float:
        began = time.perf_counter()
        create(source.task, TRAINED_STRENGTHS[-1], steps).fit(features, targets)
        return time.perf_counter() - began

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is not quite done after so many steps
        fit(1)  # which loads what it needs
        took = fit(1) if regression else fit(STEPS_TIMED) / STEPS_TIMED * USUAL_STEPS
    return len(TRAINED_STRENGTHS) * took / rows
