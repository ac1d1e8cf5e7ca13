"""What one answer is due to: the parts of a picture, the words of a text or the columns of a row that speak for it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch

from weft.data.batch.loader import Batch
from weft.insight.drawing.highlight import highlighted
from weft.insight.drawing.raster import png
from weft.insight.lenses.saliency.attribution import explained, integrated_gradients, unit_grid
from weft.insight.subject import Subject
from weft.serve.models import Model
from weft.serve.refusal import Refusal

STEPS = 24  # of the integral


def explain(model: Model, raw: Any) -> bytes | list[dict[str, Any]]:
    """A picture under its weights as PNG; or words, or columns, with weights from -1 to 1."""
    engine: Any = model.engine
    if not hasattr(engine, "network"):
        raise Refusal(422, "only the engine torch can tell what an answer is due to; serve without --engine")
    if model.task == "regression":
        raise Refusal(422, f"{model.name} answers with a number; what a class is due to cannot be asked of it")
    network = deepcopy(engine.network)  # gradients hook into its layers, and others ask the served one meanwhile
    subject = Subject(model.name, network, engine.card, engine.transform)
    inputs = engine.transform(model.inputs.prepared(raw))
    batch = explained(subject, Batch(inputs, torch.zeros(1), torch.zeros(1, dtype=torch.long), 1))
    weights = integrated_gradients(batch, STEPS)[0].float()
    if model.inputs.takes == "image":
        grid = unit_grid(subject.config)
        return png(highlighted(subject.pixels(batch.x)[0], weights.reshape(grid).numpy()))
    if model.inputs.takes == "vector":
        names = engine.columns or [f"column {number + 1}" for number in range(len(weights))]
    else:
        mask = batch.rest[0][0]
        names, weights = subject.words(batch.x[0][mask]), weights[mask]
    scaled = weights / max(float(weights.abs().max()), 1e-12)
    return [{"word": name, "weight": float(weight)} for name, weight in zip(names, scaled, strict=True)]
