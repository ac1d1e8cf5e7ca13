"""Masked-language modelling and next-sentence prediction as an objective, and what is reported of them.

Sums over masked words are divided by their number over all micro-batches and processes, never by a rank's own: two
processes then compute what one computes, though one of them may have drawn more masks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from weft.training.metrics import Metrics
from weft.training.pretraining.network import HITS, MASKED, NEXT, NEXT_HITS

LARGEST = 700.0  # exponent that a double can still hold


@dataclass(frozen=True)
class WordObjective:
    """The mean loss of a masked word, plus the mean loss of a next sentence where both are asked.

    Outputs (n, 4) are those of `Pretraining`; targets (n, 2) count what was asked of each sequence.
    """

    vocabulary: int
    masked: bool = True
    next_sentence: bool = False

    @property
    def guess(self) -> float:
        """Loss of an even guess. That of word frequencies would be nearer the mark, but every network rests there for
        a while before it learns more, and that must not count as failure."""
        return math.log(self.vocabulary) * self.masked + math.log(2) * self.next_sentence

    @property
    def spread(self) -> float:
        return 1.0  # an even guess loses as much on every word

    @property
    def metric(self) -> str:
        return "perplexity" if self.masked else "next_sentence_accuracy"

    @property
    def lower_is_better(self) -> bool:
        return self.masked

    def count(self, targets: Tensor, size: int, add: Callable[[Tensor], Tensor]) -> Tensor:
        """How many words and how many sentences are asked for in the whole batch: (2,)."""
        return add(targets.sum(0)).clamp(min=1)

    def share(self, outputs: Tensor, targets: Tensor, count: Tensor | int) -> Tensor:
        return (outputs[:, [MASKED, NEXT]].sum(0) / count).sum()

    def chance(self, targets: Tensor, count: Tensor | int) -> Tensor:
        even = [math.log(self.vocabulary) * self.masked, math.log(2) * self.next_sentence]
        return (targets.sum(0) / count * torch.tensor(even, device=targets.device)).sum()

    def mean_loss(self, outputs: Tensor, targets: Tensor) -> float:
        asked = targets.double().sum(0).clamp(min=1)
        return float((outputs[:, [MASKED, NEXT]].double().sum(0) / asked).sum())

    def headline(self, outputs: Tensor, targets: Tensor) -> float:
        if self.masked:
            return perplexity(outputs[:, MASKED], targets[:, 0])
        return ratio(outputs[:, NEXT_HITS], targets[:, 1])

    def measure(self, outputs: Tensor, targets: Tensor) -> Metrics:
        """All metrics of a split, with 95 % intervals over sequences."""
        found: Metrics = {"loss": self.mean_loss(outputs, targets)}
        if self.masked:
            losses, words = outputs[:, MASKED], targets[:, 0]
            found["perplexity"] = perplexity(losses, words)
            found["perplexity_interval"] = [math.exp(min(LARGEST, end)) for end in interval(losses, words)]
            found["masked_accuracy"] = ratio(outputs[:, HITS], words)
            found["masked_words"] = int(words.sum())
        if self.next_sentence:
            found["next_sentence_accuracy"] = ratio(outputs[:, NEXT_HITS], targets[:, 1])
            found["next_sentence_interval"] = interval(outputs[:, NEXT_HITS], targets[:, 1])
        return found


def ratio(sums: Tensor, counts: Tensor) -> float:
    """Sum over count, of all sequences together."""
    return float(sums.double().sum() / counts.double().sum().clamp(min=1))


def perplexity(losses: Tensor, words: Tensor) -> float:
    """exp of the mean loss of a masked word."""
    mean = ratio(losses, words)
    return math.exp(min(LARGEST, mean)) if math.isfinite(mean) else math.inf


def interval(sums: Tensor, counts: Tensor, repeats: int = 1000, level: float = 0.95) -> list[float]:
    """Percentile bootstrap interval of the ratio of sums, drawing sequences; seeded, so that it is reproducible."""
    rng = np.random.default_rng(0)
    pair = torch.stack([sums.double(), counts.double()], 1).numpy()
    drawn = (pair[rng.integers(0, len(pair), len(pair))].sum(0) for _ in range(repeats))
    ratios = [total / max(count, 1.0) for total, count in drawn]
    low, high = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2])
    return [float(low), float(high)]
