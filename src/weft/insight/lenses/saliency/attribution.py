"""What an answer is due to, by patch, word or column: integrated gradients and occlusion, computed by captum.

A unit is what can be taken away: a patch of a picture, a word, a column. Taken away, a patch has the mean colour of the
training set, a word is [PAD], a column its mean. [CLS], [SEP] and padding are no units and always stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from weft.data.batch.loader import Batch
from weft.data.transform.transforms import TextTransform
from weft.insight.finding import Unfit
from weft.insight.subject import Subject
from weft.insight.toeplitz import Grid
from weft.nn.embeddings import WordEmbed
from weft.training.metrics import class_probabilities

AT_ONCE = 64  # examples, or steps of an integral, that run together


def captum_attributions() -> Any:
    """captum's methods, which are an extra."""
    try:
        import captum.attr
    except ImportError as error:
        raise Unfit(f"the lens saliency needs captum ({error}): pip install 'weft[insight]'") from error
    return captum.attr


def unit_grid(config: Any) -> Grid:
    """Rows and columns of the units of a picture: the network's own patches, or at most 8 × 8."""
    grid = getattr(config, "grid", None)
    if grid is not None:
        return tuple(grid)
    fitting = [next(n for n in range(min(8, side), 0, -1) if side % n == 0) for side in config.img_size]
    return tuple(fitting)


@dataclass
class Explained:
    """A batch and what it is explained by: `x`, `base` (all units taken away), each unit's number at each place of x.

    `real` is (batch, units): texts have fewer units than the longest.
    """

    subject: Subject
    x: Tensor
    base: Tensor
    numbers: Tensor  # (1, …) like x: the unit that a place belongs to; places of no unit belong to the last
    real: Tensor
    rest: tuple[Any, ...]  # mask and segments of texts
    target: Tensor  # (batch,): the class that is predicted

    def outputs(self, x: Tensor) -> Tensor:
        return self.subject.network(x, *self.rest)

    @torch.no_grad()
    def probability(self, x: Tensor) -> Tensor:
        """Of the class that was predicted: (batch,)."""
        task = self.subject.card.task
        return class_probabilities(task, self.outputs(x)).gather(1, self.target[:, None])[:, 0]

    def with_units(self, kept: Tensor) -> Tensor:
        """The inputs with these units alone, (batch, units) bool; the others are taken away."""
        places = kept[:, self.numbers[0]] if self.x.ndim == 2 else kept[:, self.numbers[0, 0]][:, None]
        return torch.where(places, self.x, self.base)

    @property
    def sign(self) -> Tensor:
        """−1 where the one output of a binary network speaks for the other class."""
        if self.subject.card.task != "binary":
            return torch.ones(len(self.target))
        return self.target * 2.0 - 1

    @property
    def output(self) -> Tensor:
        """The output that speaks for the predicted class."""
        return torch.zeros_like(self.target) if self.subject.card.task == "binary" else self.target

    def by_unit(self, values: Tensor) -> Tensor:
        """Sums of (batch, …) values over the places of each unit: (batch, units)."""
        units = self.real.shape[1]
        flat = values.flatten(1) if self.x.ndim == 2 else values.sum(1).flatten(1)
        numbers = self.numbers[0].flatten() if self.x.ndim == 2 else self.numbers[0, 0].flatten()
        return torch.zeros(len(flat), units, dtype=flat.dtype).index_add_(1, numbers, flat)


def explained(subject: Subject, batch: Batch) -> Explained:
    """A batch of any modality, ready to be explained."""
    inputs = batch.inputs
    x = inputs["x"]
    with torch.no_grad():
        target = class_probabilities(subject.card.task, subject.network(**inputs)).argmax(1)
    if subject.config.input == "text":
        return Explained(subject, x, *text_units(subject, inputs), target=target)
    if subject.config.input == "vector":
        numbers = torch.arange(x.shape[1])[None]
        return Explained(subject, x, torch.zeros_like(x), numbers, torch.ones_like(x, dtype=torch.bool), (), target)
    rows, columns = unit_grid(subject.config)
    down = torch.arange(x.shape[2]) * rows // x.shape[2]
    right = torch.arange(x.shape[3]) * columns // x.shape[3]
    numbers = (down[:, None] * columns + right)[None, None]
    real = torch.ones(len(x), rows * columns, dtype=torch.bool)
    return Explained(subject, x, torch.zeros_like(x), numbers, real, (), target)


def text_units(subject: Subject, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor, tuple[Any, ...]]:
    """Words: what they are replaced by, their numbers, which are real, and the network's further arguments."""
    if not isinstance(subject.transform, TextTransform) or not isinstance(embedding(subject), WordEmbed):
        raise Unfit(f"{subject.name} has no word vectors of its own to be explained")
    tokenizer, x, mask = subject.transform.tokenizer, inputs["x"], inputs["mask"]
    real = mask & (x != tokenizer.cls_id) & (x != tokenizer.sep_id)
    base = torch.where(real, tokenizer.pad_id, x)
    return base, torch.arange(x.shape[1])[None], real, (mask, inputs.get("segments"))


def embedding(subject: Subject) -> Any:
    return getattr(subject.network, "embed", None)


def integrated_gradients(batch: Explained, steps: int) -> Tensor:
    """Mean gradient on the way from nothing to the input, times the way (Sundararajan et al. 2017): (batch, units)."""
    methods = captum_attributions()
    settings = {
        "baselines": batch.base, "target": batch.output, "additional_forward_args": batch.rest or None,
        "n_steps": steps, "internal_batch_size": max(AT_ONCE, len(batch.x)),
    }  # fmt: skip
    if batch.x.is_floating_point():
        values = methods.IntegratedGradients(batch.subject.network).attribute(batch.x, **settings)
    else:
        words = embedding(batch.subject).words
        values = methods.LayerIntegratedGradients(batch.subject.network, words).attribute(batch.x, **settings).sum(-1)
    return batch.by_unit(values.detach()) * batch.sign[:, None] * batch.real


def occlusion(batch: Explained) -> Tensor:
    """By how much the output falls when a unit alone is taken away: (batch, units)."""
    settings = {
        "baselines": batch.base, "target": batch.output, "additional_forward_args": batch.rest or None,
        "feature_mask": batch.numbers, "perturbations_per_eval": max(1, AT_ONCE // len(batch.x)),
    }  # fmt: skip
    with torch.no_grad():
        values = captum_attributions().FeatureAblation(batch.subject.network).attribute(batch.x, **settings)
    places = batch.by_unit(torch.ones_like(batch.x, dtype=values.dtype))
    return batch.by_unit(values) / places.clamp(min=1) * batch.sign[:, None] * batch.real
