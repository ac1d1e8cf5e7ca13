"""R² and the variance of targets that it is measured by, which other test rows would change.

R² is 1 − error²/variance, both over the test rows. To first order a row moves it by its error and by its distance from
the mean target: the influence function, which `influence` adds to the scores. Where targets are skewed (incomes,
counts, concentrations) that is not enough: the few rows that make most of the variance are not among 100 test rows, the
variance comes out too small, and so does R². `unseen_spread` says by how much it may be, for a log-normal law with the
tails that the targets show (L-moments, Hosking 1990), and `Stretch` moves the end of the interval that this concerns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

CAUTION = 6.0  # added to the shape of skewed targets, over √n: a sample without its tail shows a light tail
BENT = 0.43  # standard deviation of L-skewness × √n for normal targets
DRAWS, ROWS = 2000, 1000  # of the simulated law; more rows are extrapolated
SIGMAS = 1.96
GROWING = 3.0  # slopes of a third and above, as a row that makes most of it may be answered well by luck


@dataclass(frozen=True)
class Stretch:
    """What the ends of an interval have to be moved by, for a value that is divided by the variance of targets."""

    whole: bool  # a mean, 1 − error/variance, rather than a difference of two
    error: float  # share of the variance that is left, of the worse of two: how skewed the far end is
    hidden: float  # reach towards 0 of what is divided, were the variance as large as it may be; at 95 %
    unseen: float  # logarithm of how much larger it may be; at 95 %

    def ends(self, value: float, reach: float, scale: float) -> tuple[float, float]:
        """The interval of `value` with a first-order `reach`, which is `scale` times that at 95 %."""
        divided = 1 - value if self.whole else value
        size = abs(divided)
        near = size - math.hypot(reach, self.hidden * scale)
        if size > reach:  # then it is not 0, and dividing it by more does not make it so
            near = max(near, (size - reach) * math.exp(-self.unseen * scale))
        far = size + reach + (reach**2 / (2 * self.error) if self.error > 0 else 0.0)
        low, high = (near, far) if divided >= 0 else (-far, -near)
        return (1 - high, 1 - low) if self.whole else (low, high)


def influence(scores: Values, targets: Values | None) -> Values:
    """Scores (seeds, examples) of R² with the same means, and the variance over examples that R² has."""
    if targets is None or not targets.var() > 0:
        return scores
    return scores + (1 - scores.mean(1, keepdims=True)) * relative(targets)


def effective(candidates: Sequence[Values], targets: Values, groups: NDArray[np.int64] | None = None) -> float:
    """As how many rows, or groups of them, the errors of scores (seeds, examples) count.

    Where errors grow with skewed targets, one of 100 rows may make most of all errors. Then the variance over rows is
    an estimate from few, and comes out too small where that one happens to be answered well: so rows also count by
    the errors that they would have, had errors grown with targets exactly, as far as they do.
    """
    errors: Values = np.sum([1 - scores.mean(0) for scores in candidates], axis=0)
    away = relative(targets) + 1
    growing = min(max(GROWING * slope(errors, away - 1), 0.0), 1.0)
    if groups is not None:
        which = np.unique(groups, return_inverse=True)[1]
        errors, away = (np.bincount(which, values).astype(np.float64) for values in (errors, away))
    return 1 / max(one_over(errors), growing * one_over(away))


def one_over(weights: Values) -> float:
    """One over the number of equal weights that tell as much as these (Kish 1965)."""
    total = float(weights.sum()) ** 2
    return float((weights**2).sum()) / total if total else 1 / len(weights)


def relative(targets: Values) -> Values:
    """How far each target is from the mean, squared, as a share of the variance; less one, so that the mean is 0."""
    return (targets - targets.mean()) ** 2 / targets.var() - 1


def stretch_of(
    divided: Values, targets: Values | None, whole: bool = False, error: float | None = None
) -> Stretch | None:
    """The stretch for a mean of `divided` (examples,); None unless the scores are those of R²."""
    if targets is None or not targets.var() > 0:
        return None
    value = float(divided.mean())
    moved, unseen = relative(targets), unseen_spread(targets)
    more = max((1 - math.exp(-unseen)) ** 2 - SIGMAS**2 * float((moved**2).mean()) / len(targets), 0.0)
    hidden = (1 - shared(divided, moved)) * abs(value) * math.sqrt(more)
    return Stretch(whole, value if error is None else error, hidden, unseen)


def shared(divided: Values, moved: Values) -> float:
    """How much of a larger variance would be met by larger errors, at least: 1 where errors grow with targets."""
    value, spread = float(divided.mean()), float((moved**2).mean())
    if value == 0 or spread == 0:
        return 0.0
    met = slope(divided, moved)
    off = divided / value - 1 - met * moved
    doubt = math.sqrt(float((off**2).mean()) / (len(moved) * spread))
    return min(max(met - 2 * doubt, 0.0), 1.0)


def slope(divided: Values, moved: Values) -> float:
    """How errors grow with the distance from the mean target: 0 if they do not, 1 if they are in proportion."""
    scale = float((moved**2).mean()) * float(divided.mean())
    return float((divided * moved).mean()) / scale if scale else 0.0


def unseen_spread(targets: Values) -> float:
    """How far the logarithm of the variance of targets may lie above that of these (97.5 % one-sided)."""
    if len(targets) < 4:
        return 5.0
    skewness, kurtosis = l_moments(targets)
    bent = min(max((abs(skewness) * math.sqrt(len(targets)) / BENT - 1) / 2, 0.0), 1.0)
    shape = shape_of(kurtosis) + bent * CAUTION / math.sqrt(len(targets))
    fewer = max(len(targets) / ROWS, 1.0) ** -0.4  # slower than a square root, as tails are heavy
    return simulated(min(len(targets), ROWS), math.ceil(20 * min(shape, 3.0)) / 20) * fewer


def l_moments(values: Values) -> tuple[float, float]:
    """L-skewness and L-kurtosis of at least four values, which heavy tails disturb little."""
    ordered, count, rank = np.sort(values), len(values), np.arange(len(values))
    weights = [np.ones(count)]
    for lower in range(3):
        weights.append(weights[-1] * (rank - lower) / (count - 1 - lower))
    b0, b1, b2, b3 = (float((ordered * weight).mean()) for weight in weights)
    scale = 2 * b1 - b0
    return (6 * b2 - 6 * b1 + b0) / scale, (20 * b3 - 30 * b2 + 12 * b1 - b0) / scale


def shape_of(kurtosis: float) -> float:
    """Standard deviation of the logarithm in the log-normal law of this L-kurtosis (Hosking & Wallis 1997, A.8)."""
    skewness = np.linspace(0, 0.95, 400)
    square = skewness**2
    kurtoses = 0.12282 + square * (0.77518 + square * (0.12279 + square * (-0.13638 + square * 0.11368)))
    t = float(np.interp(kurtosis, kurtoses, skewness))
    above = 2.0466534 + t**2 * (-3.6544371 + t**2 * (1.8396733 - t**2 * 0.20360244))
    return t * above / (1 + t**2 * (-2.0182173 + t**2 * (1.2420401 - t**2 * 0.21741801)))


@lru_cache(maxsize=256)
def simulated(count: int, shape: float) -> float:
    """How far below the truth the log-variance of `count` log-normal values comes out, in 2.5 % of samples."""
    drawn = np.random.default_rng(0).normal(size=(DRAWS, count))
    if shape == 0:
        return -float(np.quantile(np.log(drawn.var(1)), 0.025))
    variance = math.exp(shape**2) * math.expm1(shape**2)
    return -float(np.quantile(np.log(np.exp(shape * drawn).var(1) / variance), 0.025))
