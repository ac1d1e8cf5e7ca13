"""Intervals and tests for scores that vary over examples and over seeds.

The scores of a candidate form a matrix (seeds, examples): every seed is a trained network, every example is judged by
all of them. Both are drawn at random, so neither may be counted as if the other did not exist: 5 seeds × 1,000 examples
are not 5,000 independent trials. In the crossed model

    score[s, e] = mean + seed[s] + example[e] + rest[s, e]

the variance of the mean is var(seed)/S + var(example)/E + var(rest)/(S·E). It is estimated from mean squares, and its
degrees of freedom after Satterthwaite (1946), so that three seeds get the wide interval that three seeds deserve.
These keep the level where that alone falls short of it (`benchmarks/coverage.py` measures it):

- Answers that are right or wrong get pseudo-examples: 30 of 30 right is no proof of 100 % (`pseudo_examples.py`).
- Satterthwaite's interval is too narrow where few seeds are most of the variance, so it is never narrower than what
  the seeds alone give, and it reaches further towards worse seeds where those seen are close to 100 %.
- The score of a regression, 1 − error²/variance, rests on a variance of targets that other test rows would change
  (`target_spread.py`), balanced accuracy on the rows of each class, macro-F1 on the answers too (`macro_f1.py`), and
  rows of a group are not independent: `rows.py` brings that in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weft.studies.statistics.pseudo_examples import NONE, Pseudo, examples_a_row, per_row, pseudo
from weft.studies.statistics.rows import Codes, Rows, Scores, balance, by_group, linear
from weft.studies.statistics.target_spread import SIGMAS, Stretch, effective, stretch_of

PLAIN = Rows()
LEVEL = 0.95
FEW = 7  # rows or fewer, of which the signs alone are counted


@dataclass(frozen=True)
class Part:
    """A part of a variance: its value and the degrees of freedom it was estimated with."""

    value: float
    freedom: float
    seen: float = 0.0  # of seeds: the value without its floor
    count: int = 0  # seeds, or examples, that it was divided by


@dataclass(frozen=True)
class Estimate:
    """A mean, or a difference of means, with its interval; `p` is the two-sided probability of such a value at 0."""

    mean: float
    low: float
    high: float
    p: float
    error: float  # standard error
    freedom: float  # degrees of freedom of the error
    centre: float | None = None  # of the interval, where pseudo-examples move it off the mean
    alone: tuple[float, float] = (0.0, 1.0)  # error and degrees of freedom of the seeds alone
    parts: tuple[Part, ...] = ()  # of the variance: over examples, then over the seeds of each candidate
    bounds: tuple[float, float] = (-math.inf, math.inf)  # what the value can be
    stretch: Stretch | None = None  # where it rests on the variance of targets
    lean: float = 0.0  # by how much the end on its side lies further out, as seeds are skewed


def mean_of(scores: Scores, rows: Rows = PLAIN) -> Estimate:
    """Mean of one candidate. A single row is one network: its interval covers the examples only."""
    added = pseudo([scores], rows)
    examples, centre = over_rows([scores], rows, added)
    stretch = stretch_of(1 - scores.mean(0), rows.targets, whole=True)
    bounds = (0.0, 1.0) if len(added[0]) else (-math.inf, 1.0) if stretch else (-math.inf, math.inf)
    parts = refolded([examples, over_seeds(linear(scores, rows))], [scores], rows)
    lean = leaning([scores], parts) if len(added[0]) else 0.0
    return _estimate(float(scores.mean()), centre, parts, bounds, stretch, lean)


def difference(first: Scores, second: Scores, rows: Rows = PLAIN) -> Estimate:
    """Mean of `first` minus mean of `second`; examples are the same for both, seeds are not paired."""
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"candidates judged on {first.shape[1]} and on {second.shape[1]} examples cannot be paired")
    both = [first, second]
    added = pseudo(both, rows)
    examples, centre = over_rows(both, rows, added)
    per_example = per_row(both)
    stretch = stretch_of(per_example, rows.targets, error=1 - min(float(first.mean()), float(second.mean())))
    bounds = (-1.0, 1.0) if len(added[0]) else (-math.inf, math.inf)
    parts = refolded([examples, *(over_seeds(linear(scores, rows)) for scores in both)], both, rows)
    lean = leaning(both, parts) if len(added[0]) else 0.0
    return of_few(_estimate(float(per_example.mean()), centre, parts, bounds, stretch, lean))


def leaning(candidates: Sequence[Scores], parts: Sequence[Part]) -> float:
    """How much further an interval has to reach because seeds are skewed: upwards, or downwards if it is negative.

    The accuracies of seeds near 100 % are skewed: most lie close together and a few far below, which five of them
    mostly do not show. Their third moment is taken for that of a beta law of the same mean and variance, and what it
    does to Student's t for the first-order term of Hall (1992) at 95 %.
    """
    variance, moment = math.fsum(part.value for part in parts), 0.0
    for scores, part, sign in zip(candidates, parts[1:], (1, -1), strict=False):
        mean = float(scores.mean())
        if part.seen > 0 and 0 < mean < 1:
            moment += sign * 2 * (1 - 2 * mean) / (mean * (1 - mean)) * part.seen**2
    return (1 + 2 * SIGMAS**2) / 6 * moment / variance if variance else 0.0


def over_rows(candidates: Sequence[Scores], rows: Rows, added: Pseudo) -> tuple[Part, float]:
    """Variance of a mean, or of a difference, over test rows, and the centre of its interval.

    In balanced accuracy each class is a sample of its own, and pseudo-examples are shared among the classes (Price &
    Bonett 2004). Where a few rows make most of the error in R², its variance is known as from so few.
    """
    if rows.classes is not None and rows.groups is None:
        return over_classes(candidates, rows.classes, added)
    used = [linear(scores, rows) for scores in candidates]
    examples, centre = over_examples(used, (added[0], examples_a_row(candidates, rows) * added[1]))
    if rows.targets is not None and rows.targets.var() > 0:
        known = effective(candidates, rows.targets, rows.groups)
        examples = replace(examples, freedom=min(examples.freedom, known))
    if rows.f1_classes is not None and rows.groups is None:
        examples = replace(examples, freedom=freedom_by_class(per_row(used), rows.f1_classes, added))
    return examples, centre


def over_classes(candidates: Sequence[Scores], classes: Codes, added: Pseudo) -> tuple[Part, float]:
    """The same where every class weighs the same, however many rows it has."""
    numbers = np.unique(classes)
    weight, share = balance(classes), 1 / len(numbers)
    parts, centres = [], []
    for number in numbers:
        own = classes == number
        answers = [scores[:, own] / weight[own] for scores in candidates]
        part, centre = over_examples(answers, (added[0], share * added[1]))
        parts.append(part)
        centres.append(centre)
    error, freedom = satterthwaite([(share**2 * part.value, part.freedom) for part in parts])
    return Part(error**2, freedom, count=len(classes)), float(np.mean(centres))


def freedom_by_class(values: Scores, classes: Codes, added: Pseudo) -> float:
    """Degrees of freedom of the variance of values (examples,), most of which may be that of the rows of one class.

    Pseudo-examples are of one class after the other, over and over."""
    (more, weight), centre = added, float(values.mean())
    _, which, counts = np.unique(classes, return_inverse=True, return_counts=True)
    squares = np.bincount(which, (values - centre) ** 2) + (weight * (more - centre) ** 2).reshape(-1, len(counts)).sum(
        0
    )
    rows = counts + weight.sum() / len(counts)
    return max(satterthwaite(list(zip(squares, np.maximum(rows - 1, 1.0), strict=True)))[1], 1.0)


def over_examples(candidates: Sequence[Scores], added: Pseudo = NONE) -> tuple[Part, float]:
    """Variance of a mean, or of a difference, because other examples might have been drawn; and the mean itself.

    The values of examples are means over seeds; they vary by the rest too, which `over_seeds` counts. Pseudo-examples
    are counted as if they had been seen.
    """
    values, (more, weight) = per_row(candidates), added
    count = len(values) + float(weight.sum())
    centre = (float(values.sum()) + float(weight @ more)) / count
    if count <= 1:
        return Part(0.0, 1, count=len(values)), centre
    squares = float(((values - centre) ** 2).sum()) + float(weight @ (more - centre) ** 2)
    counted = math.fsum(rest(scores) / len(scores) for scores in candidates)
    return Part(max(squares / (count - 1) / count - counted, 0.0), max(count - 1, 1.0), count=len(values)), centre


def over_seeds(scores: Scores) -> Part:
    """Variance of a candidate's mean because other seeds might have been drawn, the rest included.

    The rest alone is its floor, known well as there are many examples: three seeds that agree by luck must not be
    taken for seeds that always agree.
    """
    count = len(scores)
    if count < 2:
        return Part(0.0, 1, count=count)
    seen = float(scores.mean(1).var(ddof=1))
    return Part(max(seen, rest(scores)) / count, count - 1, seen / count, count)


def rest(scores: Scores) -> float:
    """Variance of one seed's mean that neither the seed nor the examples explain: mean square of the interaction."""
    seeds, examples = scores.shape
    if seeds < 2 or examples < 2:
        return 0.0
    left = scores - scores.mean(1, keepdims=True) - scores.mean(0) + scores.mean()
    return float((left**2).sum()) / ((seeds - 1) * (examples - 1)) / examples


def _estimate(
    mean: float,
    centre: float,
    parts: Sequence[Part],
    bounds: tuple[float, float],
    stretch: Stretch | None,
    lean: float,
) -> Estimate:
    error, freedom = satterthwaite([(part.value, part.freedom) for part in parts])
    alone = satterthwaite([(part.seen, part.freedom) for part in parts[1:]])
    made = Estimate(mean, mean, mean, 1.0, error, freedom, centre, alone, tuple(parts), bounds, stretch, lean)
    return widened(replace(made, p=probability(made)), LEVEL)


def of_few(estimate: Estimate) -> Estimate:
    """A difference on a few rows shows no more than their signs do: that of two rows has a p-value of 0.5.

    Student's t takes rows for normal, and two that happen to agree for proof. Where there are no examples, as with the
    loss of each run, seeds are the rows.
    """
    examples, *seeds = (part.count for part in estimate.parts)
    rows = examples if examples > 1 else sum(seeds)
    if rows > FEW or estimate.p >= 2.0 ** (1 - rows):
        return estimate
    return widened(replace(estimate, p=2.0 ** (1 - rows), error=error_at(estimate, 2.0 ** (1 - rows))), LEVEL)


def satterthwaite(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Standard error, and its degrees of freedom, of a sum of independent parts (value, degrees of freedom)."""
    variance = math.fsum(value for value, _ in parts)
    if variance == 0:
        return 0.0, math.inf
    return math.sqrt(variance), variance**2 / math.fsum(value**2 / freedom for value, freedom in parts)


def probability(estimate: Estimate) -> float:
    """Two-sided p-value at 0: the larger of that of all parts and, at a stricter level, that of the seeds alone."""
    from scipy.special import stdtr  # Student's t; scipy.stats has it too, but takes seconds to import

    value = off_zero(estimate)

    def tail(error: float, freedom: float) -> float:
        return float(2 * stdtr(freedom, -value / error)) if error else float(value == 0)

    error, freedom = estimate.alone
    seeds = tail(error, freedom) / leeway(freedom) if error else 0.0
    return max(tail(estimate.error, estimate.freedom), seeds)


def error_at(estimate: Estimate, p: float) -> float:
    """The standard error at which the p-value would be `p`."""
    from scipy.special import stdtrit

    quantile = -float(stdtrit(estimate.freedom, p / 2))
    return off_zero(estimate) / quantile if quantile > 0 else max(estimate.error, off_zero(estimate))


def reach(estimate: Estimate, level: float) -> float:
    """Half the width of the interval of a level, before what is known of the variance of targets."""
    from scipy.special import stdtrit

    def half(error: float, freedom: float, level: float) -> float:
        return float(stdtrit(freedom, (1 + level) / 2)) * error if error else 0.0

    error, freedom = estimate.alone
    alone = half(error, freedom, 1 - leeway(freedom) * (1 - level))
    return max(half(estimate.error, estimate.freedom, level), alone)


def leeway(freedom: float) -> float:
    """Times as much error as others that seeds alone are allowed: 1.4 with two seeds, none from three on.

    Two seeds alone would make every interval half as wide again; this way 93 % is kept whatever their share.
    """
    return 1 + 0.4 * min(max(2 - freedom, 0.0), 1.0)


def centre_of(estimate: Estimate) -> float:
    return estimate.mean if estimate.centre is None else estimate.centre


def off_zero(estimate: Estimate) -> float:
    """What the interval has to reach for 0 to lie in it, beside what it leans that way."""
    centre = centre_of(estimate)
    leant = -estimate.lean if centre > 0 else estimate.lean
    return max(abs(centre) - max(leant, 0.0), 0.0)


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
    half, centre = reach(estimate, level), centre_of(estimate)
    low, high = centre - half + min(estimate.lean, 0.0), centre + half + max(estimate.lean, 0.0)
    if estimate.stretch is not None:
        low, high = estimate.stretch.ends(estimate.mean, half, half / (reach(estimate, LEVEL) or 1.0))
    least, most = estimate.bounds
    low, high = max(min(low, estimate.mean), least), min(max(high, estimate.mean), most)
    return replace(estimate, low=low, high=high)


def refolded(parts: list[Part], candidates: Sequence[Scores], rows: Rows) -> list[Part]:
    """The parts as they are where a row of the table is a repetition of cross-validation, not a seed.

    Repetitions share their rows, and folds most of their training rows, so the table does not show what other training
    rows would change. Nadeau & Bengio (2003) put it at test rows over training rows, k/(k − 1) of the variance of the
    mean of k folds. Two candidates are trained on the same rows, which cancels much of it: 2/(k − 1) was enough for
    differences (`benchmarks/coverage.py --folds`).
    """
    if rows.folds is None:
        return parts
    factor = 1 + (rows.folds if len(parts) == 2 else 2) / (rows.folds - 1)
    found = [replace(part, value=factor * part.value, seen=0.0) for part in parts]
    return found if rows.cut is None else [*found, over_folds(candidates, rows, found[0].value, factor)]


def over_folds(candidates: Sequence[Scores], rows: Rows, known: float, factor: float) -> Part:
    """Variance because other networks might have been trained for the folds of a single repetition.

    Its k networks answer different rows, so only how far the folds are apart tells of it: more than the `known`
    variance over rows explains. The folds alone, few as they are, bound the interval as seeds alone do.
    """
    assert rows.cut is not None
    values = per_row([linear(scores, replace(rows, groups=None)) for scores in candidates])
    folds = by_group(values[None], rows.cut)[0]
    seen = factor * float(folds.var(ddof=1)) / len(folds)
    return Part(max(seen - known, 0.0), len(folds) - 1, seen, 1)


def mcnemar(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    """Exact two-sided p-value that two given networks, right or wrong on the same examples, are equally good.

    It speaks of these two networks, not of how they were trained: for that there are seeds and `difference`.
    """
    from scipy.stats import binomtest

    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    if only_first + only_second == 0:
        return 1.0
    return float(binomtest(only_first, only_first + only_second).pvalue)
