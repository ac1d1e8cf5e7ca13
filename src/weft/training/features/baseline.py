"""Features of a trained network in the place of classical ones: what a comparison sets beside networks from scratch."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from weft.data.open.source import ROLES, Source
from weft.data.open.splits import spread
from weft.data.transform.transforms import ImageTransform
from weft.networks.measure.cost import total_macs, total_parameters
from weft.training.config import RunConfig
from weft.training.features.folding import pooled
from weft.training.features.linear import Scale
from weft.training.features.store import FrozenNetwork, features_of
from weft.training.finetuning.config import FinetuneConfig
from weft.training.finetuning.prepare import open_frozen

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
    found = []
    for raw in raws:
        ((ids, segments),) = transform.tokenizer.encode([raw], transform.max_length)
        words, kinds = (torch.from_numpy(np.asarray(numbers, dtype=np.int64))[None] for numbers in (ids, segments))
        features: Any = network.forward_features(words, None, kinds)  # type: ignore[call-arg]
        found.append(network.forward_head(features, pre_logits=True))
    return torch.cat(found)


def seconds_per_row(config: RunConfig, start: str, source: Source, rows: int = 24) -> float:
    """How long the features of one row take, from a few of them."""
    frozen, _ = frozen_of(config, start, source)
    raws, _ = source.splits["train"].read(spread(source.count("train"), rows))  # rows may be sorted, by length too
    with torch.inference_mode():
        of_raws(frozen, raws[:2])
        began = time.perf_counter()
        of_raws(frozen, raws)
    return (time.perf_counter() - began) / len(raws)
