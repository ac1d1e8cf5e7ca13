"""What more training rows would probably bring: a power law through a learning curve.

The error of a learner falls with the number of training rows n about as c + a·n^(−b) (Hestness et al. 2017), and three
points of a curve do not tell c, the error that no number of rows takes away, from a small b. So c = 0 and every c up to
the lowest error seen are fitted, weighted by how well they explain the points, and the interval is that of all of them
together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOORS, DRAWS = 40, 200  # values of c, and draws for each of them
STEEPEST = 1.5  # exponents: learning curves have 0.05 to 0.5 where they are a power law, up to 1 where they are easy
TIMES = (2, 4)  # as many rows
NORMAL = 1.96


@dataclass(frozen=True)
class Curve:
    """Draws of the three numbers of a learning curve, as plausible as the points make them."""

    floor: NDArray[np.float64]
    scale: NDArray[np.float64]  # logarithm of a, for n relative to `unit` rows
    power: NDArray[np.float64]
    weight: NDArray[np.float64]
    unit: float

    def at(self, rows: float, level: float = 0.95) -> tuple[float, float, float]:
        """Error at so many rows: median and the ends of an interval."""
        errors = self.floor + np.exp(self.scale - self.power * math.log(rows / self.unit))
        return quantiles(errors, self.weight, (0.5, (1 - level) / 2, (1 + level) / 2))


def fit(rows: Sequence[float], errors: Sequence[float], spread: Sequence[float]) -> Curve:
    """A curve through at least two points: errors with their standard errors, at numbers of training rows."""
    n, e, s = (np.asarray(values, dtype=np.float64) for values in (rows, errors, spread))
    if len(n) < 2 or not (e > 0).all():
        raise ValueError("a learning curve takes two points or more, with errors above 0")
    s = np.maximum(s, 0.01 * e)  # no error is known to less than a percent of itself
    unit = float(n.max())
    x = np.log(n / unit)
    floors = np.linspace(0.0, 0.97, FLOORS) * float(e.min())
    found = [line(x, np.log(e - floor), s / (e - floor)) for floor in floors]
    noise = np.random.default_rng(0).normal(size=(FLOORS, DRAWS, 2))
    drawn = np.stack([mean + step @ root.T for (mean, root, _), step in zip(found, noise, strict=True)])
    misfits = np.array([misfit for *_, misfit in found])
    weight = np.exp(-0.5 * (misfits - misfits.min()))
    weight[0] *= FLOORS - 1  # a plain power law is as likely beforehand as one with a floor
    power = -drawn[..., 1]
    likely = weight[:, None] * ((power >= 0) & (power <= STEEPEST))  # more rows of the same kind do no harm
    if not likely.sum() > 0:  # the curve rises, or falls off a cliff: the nearest that is a curve
        likely, power = np.broadcast_to(weight[:, None], power.shape), np.clip(power, 0.0, STEEPEST)
    return Curve(floors.repeat(DRAWS), drawn[..., 0].ravel(), power.ravel(), likely.ravel(), unit)


def line(
    x: NDArray[np.float64], y: NDArray[np.float64], spread: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Weighted least squares of y on x: (intercept, slope), the root of their covariance, and the misfit."""
    design = np.stack([np.ones_like(x), x], 1) / spread[:, None]
    covariance = np.linalg.inv(design.T @ design)
    mean = covariance @ design.T @ (y / spread)
    misfit = float(((y / spread - design @ mean) ** 2).sum())
    return mean, np.linalg.cholesky(covariance), misfit


def quantiles(
    values: NDArray[np.float64], weight: NDArray[np.float64], shares: tuple[float, float, float]
) -> tuple[float, float, float]:
    order = np.argsort(values)
    total = np.cumsum(weight[order]) / weight.sum()
    last = len(order) - 1
    middle, low, high = (float(values[order[min(int(np.searchsorted(total, share)), last)]]) for share in shares)
    return middle, low, high


def more_rows(points: Sequence[Mapping[str, Any]], rows: int, unit: str = "points") -> list[dict[str, Any]]:
    """For each candidate of a learning curve, what twice and four times as many training rows would probably bring.

    A point has `candidate`, `share`, `mean`, `low` and `high`: an accuracy or an R². The largest share is that of all
    `rows`, which may be a part of a source. `held_out` says whether the last point lies in the interval that the points
    before it give; None where these are fewer than two.
    """
    found, whole = [], max((float(point["share"]) for point in points), default=1.0)
    for name in dict.fromkeys(str(point["candidate"]) for point in points):
        own = sorted((point for point in points if point["candidate"] == name), key=lambda point: point["share"])
        errors = [1 - float(point["mean"]) for point in own]
        if len(own) < 2 or min(errors) <= 0:
            continue
        spread = [(float(point["high"]) - float(point["low"])) / (2 * NORMAL) for point in own]
        counts = [float(point["share"]) / whole * rows for point in own]
        curve = fit(counts, errors, spread)
        ahead = {times: curve.at(times * counts[-1]) for times in TIMES}
        foretold = last_held_out(counts, errors, spread)
        doubt = "; but the points before did not foretell the last, so hardly these" if foretold is False else ""
        found.append(
            {
                "candidate": name,
                "rows": round(counts[-1]),
                "score": 1 - errors[-1],
                "forecasts": [
                    {"rows": round(times * counts[-1]), "mean": 1 - middle, "low": 1 - high, "high": 1 - low}
                    for times, (middle, low, high) in ahead.items()
                ],
                "held_out": foretold,
                "sentence": f"{name}: {said(1 - errors[-1], ahead, unit)}{doubt}",
            }
        )
    return found


def last_held_out(rows: Sequence[float], errors: Sequence[float], spread: Sequence[float]) -> bool | None:
    """Whether the points before the last foretell it, within their interval and its own."""
    if len(rows) < 3:
        return None
    middle, low, high = fit(rows[:-1], errors[:-1], spread[:-1]).at(rows[-1])
    own = NORMAL * spread[-1]
    return middle - math.hypot(middle - low, own) <= errors[-1] <= middle + math.hypot(high - middle, own)


def said(score: float, ahead: Mapping[int, tuple[float, float, float]], unit: str) -> str:
    """`twice the rows would probably bring 91.0 (89.5…92.8), four times …`, beside what there is."""

    def shown(value: float) -> str:
        return (f"{100 * value:.1f}" if unit == "points" else f"{value:.3f}").replace("-", "−")

    words = {2: "twice the rows", 4: "four times the rows"}
    parts = [f"{words[n]} {shown(1 - e)} ({shown(1 - high)}…{shown(1 - low)})" for n, (e, low, high) in ahead.items()]
    return f"{shown(score)} now; with {', with '.join(parts)} probably"
