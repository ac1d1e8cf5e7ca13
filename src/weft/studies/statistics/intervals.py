"""Intervals and tests for scores that vary over examples and over seeds.

The scores of a candidate form a matrix (seeds, examples): every seed is a trained network, every example is judged by
all of them. Both are drawn at random, so neither may be counted as if the other did not exist: 5 seeds × 1,000 examples
are not 5,000 independent trials. In the crossed model

    score[s, e] = mean + seed[s] + example[e] + rest[s, e]

the variance of the mean is var(seed)/S + var(example)/E + var(rest)/(S·E). It is estimated from mean squares, and its
degrees of freedom after Satterthwaite (1946), so that three seeds get the wide interval that three seeds deserve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]  # (seeds, examples)
LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean, or a difference of means, with its interval; `p` is the two-sided probability of such a value at 0."""

    mean: float
    low: float
    high: float
    p: float
    error: float  # standard error
    freedom: float  # degrees of freedom of the error


@dataclass(frozen=True)
class Part:
    """A part of a variance: its value and the degrees of freedom it was estimated with."""

    value: float
    freedom: float


def mean_of(scores: Scores) -> Estimate:
    """Mean of one candidate. A single row is one network: its interval covers the examples only."""
    return _estimate(float(scores.mean()), [over_examples(scores.mean(0), [scores]), over_seeds(scores)])


def difference(first: Scores, second: Scores) -> Estimate:
    """Mean of `first` minus mean of `second`; examples are the same for both, seeds are not paired."""
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"candidates judged on {first.shape[1]} and on {second.shape[1]} examples cannot be paired")
    per_example = first.mean(0) - second.mean(0)
    parts = [over_examples(per_example, [first, second]), over_seeds(first), over_seeds(second)]
    return _estimate(float(per_example.mean()), parts)


def over_examples(values: Scores, candidates: Sequence[Scores]) -> Part:
    """Variance of the mean of `values` (examples,) because other examples might have been drawn.

    `values` are means over the seeds of `candidates`; they vary by the rest too, which `over_seeds` counts.
    """
    if len(values) < 2:
        return Part(0.0, 1)
    counted = math.fsum(rest(scores) / len(scores) for scores in candidates)
    return Part(max(float(values.var(ddof=1)) / len(values) - counted, 0.0), len(values) - 1)


def over_seeds(scores: Scores) -> Part:
    """Variance of a candidate's mean because other seeds might have been drawn, the rest included.

    The rest alone is its floor, known well as there are many examples: three seeds that agree by luck must not be
    taken for seeds that always agree.
    """
    if len(scores) < 2:
        return Part(0.0, 1)
    return Part(max(float(scores.mean(1).var(ddof=1)), rest(scores)) / len(scores), len(scores) - 1)


def rest(scores: Scores) -> float:
    """Variance of one seed's mean that neither the seed nor the examples explain: mean square of the interaction."""
    seeds, examples = scores.shape
    if seeds < 2 or examples < 2:
        return 0.0
    left = scores - scores.mean(1, keepdims=True) - scores.mean(0) + scores.mean()
    return float((left**2).sum()) / ((seeds - 1) * (examples - 1)) / examples


def _estimate(mean: float, parts: Sequence[Part]) -> Estimate:
    from scipy.special import stdtr, stdtrit  # Student's t; scipy.stats has it too, but takes seconds to import

    variance = math.fsum(part.value for part in parts)
    if variance == 0:
        return Estimate(mean, mean, mean, 1.0 if mean == 0 else 0.0, 0.0, math.inf)
    freedom = variance**2 / math.fsum(part.value**2 / part.freedom for part in parts)
    error = math.sqrt(variance)
    reach = float(stdtrit(freedom, (1 + LEVEL) / 2)) * error
    p = float(2 * stdtr(freedom, -abs(mean) / error))
    return Estimate(mean, mean - reach, mean + reach, p, error, freedom)


def holm(values: Sequence[float]) -> list[float]:
    """Holm's (1979) adjusted p-values, in the order given: reject below α and the family's error stays below α."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    adjusted, highest = [0.0] * len(values), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - rank) * values[index]))
        adjusted[index] = highest
    return adjusted


def corrected(estimates: Sequence[Estimate]) -> list[tuple[Estimate, float]]:
    """Each difference with its interval widened by Holm's correction, and its adjusted p-value.

    An interval has the level at which Holm's test judges its difference, 1 − α·p/adjusted: between 1 − α and
    Bonferroni's 1 − α/n. So it leaves 0 out exactly where the adjusted p-value is below α. The intervals of all
    differences together cover the truth less often than Bonferroni's would, and more often than plain ones.
    """
    adjusted = holm([estimate.p for estimate in estimates])
    capless = holm([estimate.p / max(len(estimates), 1) for estimate in estimates])  # the same, never cut at 1
    factors = [
        len(estimates) * value / estimate.p if estimate.p else float(len(estimates))
        for value, estimate in zip(capless, estimates, strict=True)
    ]
    return [
        (widened(estimate, 1 - (1 - LEVEL) / factor), p)
        for estimate, factor, p in zip(estimates, factors, adjusted, strict=True)
    ]


def widened(estimate: Estimate, level: float) -> Estimate:
    """The same estimate with an interval of another level."""
    from scipy.special import stdtrit

    reach = float(stdtrit(estimate.freedom, (1 + level) / 2)) * estimate.error if estimate.error else 0.0
    return replace(estimate, low=estimate.mean - reach, high=estimate.mean + reach)


def mcnemar(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    """Exact two-sided p-value that two given networks, right or wrong on the same examples, are equally good.

    It speaks of these two networks, not of how they were trained: for that there are seeds and `difference`.
    """
    from scipy.stats import binomtest

    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    if only_first + only_second == 0:
        return 1.0
    return float(binomtest(only_first, only_first + only_second).pvalue)
