"""What a network answers over a split, kept in sums: confusions, calibration, its most confident errors, and features.

Memory does not grow with the number of examples: a few errors and a few hundred feature vectors are all that is kept.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from weft.insight.subject import Subject, spread
from weft.training.metrics import class_probabilities

BINS = 15  # of confidence, as the metrics have (Guo et al. 2017)


@dataclass(frozen=True, order=True)
class Mistake:
    """An example that was taken for another class; larger means more confident."""

    confidence: float
    index: int
    target: int
    predicted: int


@dataclass
class Answers:
    """Confusions (true, predicted); for each bin of confidence its examples, summed confidence and right answers."""

    confusion: Tensor  # (classes, classes)
    bins: Tensor  # (BINS, 3)
    worst: list[Mistake]
    features: Tensor  # (kept, channels): what the head reads
    labels: Tensor  # (kept,): their true classes
    wrong: Tensor  # (kept,): whether they were mistaken

    @property
    def count(self) -> int:
        return int(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        return float(self.confusion.diagonal().sum() / self.confusion.sum())

    @property
    def calibration_error(self) -> float:
        """Mean gap of confidence and accuracy over the bins."""
        return float((self.bins[:, 1] - self.bins[:, 2]).abs().sum() / self.bins[:, 0].sum())

    @property
    def overconfidence(self) -> float:
        """Mean confidence less accuracy."""
        return float((self.bins[:, 1] - self.bins[:, 2]).sum() / self.bins[:, 0].sum())

    def confused(self, most: int) -> list[tuple[int, int, int]]:
        """The commonest confusions: how often, true class, predicted class."""
        off = self.confusion.clone().fill_diagonal_(0)
        found = [(int(off[i, j]), i, j) for i, j in off.nonzero().tolist()]
        return sorted(found, key=lambda each: -each[0])[:most]


@torch.no_grad()
def watch_answers(subject: Subject, examples: int, errors: int, points: int) -> Answers:
    """One pass over `examples`, keeping the `errors` most confident errors and the features of `points`."""
    classes = max(len(subject.card.classes), subject.config.num_classes, 2)
    confusion, bins = torch.zeros(classes, classes, dtype=torch.long), torch.zeros(BINS, 3, dtype=torch.double)
    worst: list[Mistake] = []
    kept: list[tuple[Tensor, Tensor, Tensor]] = []
    wanted = torch.from_numpy(spread(min(examples, len(subject.source.splits[subject.split])), points))
    seen = 0
    for batch in subject.batches(examples):
        outputs, features = with_features(subject, batch.inputs)
        confidence, predicted = class_probabilities(subject.card.task, outputs).max(1)
        targets = batch.targets.long()
        confusion.index_put_((targets, predicted), torch.tensor(1), accumulate=True)
        add_to_bins(bins, confidence, predicted == targets)
        keep_worst(worst, batch.index, targets, predicted, confidence, errors)
        chosen = wanted[(wanted >= seen) & (wanted < seen + len(targets))] - seen
        kept.append((features[chosen], targets[chosen], predicted[chosen] != targets[chosen]))
        seen += len(targets)
    features, labels, wrong = (torch.cat(parts) for parts in zip(*kept, strict=True))
    return Answers(confusion, bins, sorted(worst, reverse=True), features, labels, wrong)


def with_features(subject: Subject, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Outputs (batch, classes) and what the head made them of (batch, channels), in one pass."""
    found: list[Tensor] = []

    def hook(_: nn.Module, args: tuple[Any, ...]) -> None:
        found.append(args[0].flatten(1).float())

    handle = subject.network.get_classifier().register_forward_pre_hook(hook)
    try:
        outputs = subject.network(**inputs)
    finally:
        handle.remove()
    return outputs, found[0]


def add_to_bins(bins: Tensor, confidence: Tensor, right: Tensor) -> None:
    """Count examples into bins of equal width."""
    which = (confidence * BINS).ceil().long().sub(1).clamp(0, BINS - 1)
    rows = torch.stack([torch.ones_like(confidence), confidence, right.to(confidence.dtype)], dim=1)
    bins.index_add_(0, which, rows.double())


def keep_worst(
    worst: list[Mistake], index: Tensor, targets: Tensor, predicted: Tensor, confidence: Tensor, most: int
) -> None:
    """Keep the `most` confident errors of all so far, in a heap."""
    for row in (predicted != targets).nonzero()[:, 0].tolist():
        found = Mistake(float(confidence[row]), int(index[row]), int(targets[row]), int(predicted[row]))
        if len(worst) < most:
            heapq.heappush(worst, found)
        else:
            heapq.heappushpop(worst, found)


def purity(features: Any, labels: Any, neighbours: int = 10) -> float:
    """Share of the nearest neighbours that are of an example's own class, on average."""
    from sklearn.neighbors import NearestNeighbors

    count = min(neighbours, len(features) - 1)
    near = NearestNeighbors(n_neighbors=count + 1).fit(features).kneighbors(features, return_distance=False)[:, 1:]
    return float(np.mean(np.asarray(labels)[near] == np.asarray(labels)[:, None]))


def in_two_dimensions(features: Tensor) -> dict[str, Any]:
    """Features (points, channels) in the plane, by PCA and by t-SNE: (points, 2) each, always the same."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    rows = features.double().numpy()
    most = min(50, *rows.shape)  # t-SNE's usual first step, which takes noise away and most of the time
    reduced = PCA(most, random_state=0).fit_transform(rows)
    perplexity = min(30.0, (len(rows) - 1) / 3)
    tsne = TSNE(2, perplexity=perplexity, init=reduced[:, :2] / (reduced[:, 0].std() or 1) * 1e-4, random_state=0)
    return {"PCA": reduced[:, :2], "t-SNE": tsne.fit_transform(reduced)}
