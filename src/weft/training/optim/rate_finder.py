"""The learning-rate finder (Smith 2017): raise the rate exponentially, watch the loss, stop when it blows up."""

from __future__ import annotations

import math
from collections.abc import Callable

STEPS = 100
DECADES = 5  # from a thousandth of the optimiser's usual rate to a hundred times it
SMOOTHING = 0.9
BLOWN_UP = 2.0  # times the first loss
MARGIN = 10  # the rate at the lowest loss is the edge; a tenth of it trains (Smith 2017, Howard & Gugger 2020)

Curve = list[tuple[float, float]]


def find_rate(step: Callable[[int, float], float], usual: float) -> tuple[float, Curve]:
    """The rate to use and the curve (rate, smoothed loss) it was read from; `step(number, lr)` returns a loss.

    Changes the weights: the caller puts them back.
    """
    curve: Curve = []
    average, first = 0.0, math.inf
    for number in range(STEPS):
        lr = usual * 10 ** (DECADES * number / (STEPS - 1) - 3)
        loss = step(number, lr)
        average = SMOOTHING * average + (1 - SMOOTHING) * loss
        smoothed = average / (1 - SMOOTHING ** (number + 1))
        first = min(first, smoothed) if number < 5 else first
        if not math.isfinite(loss) or smoothed > BLOWN_UP * first:
            break
        curve.append((lr, smoothed))
    if len(curve) < 5:
        return usual / 1000, curve
    edge = min(curve, key=lambda point: point[1])[0]
    return float(f"{edge / MARGIN:.2g}"), curve


def draw(curve: Curve, chosen: float, rows: int = 15, width: int = 40) -> str:
    """The curve as text: a row a rate, a bar for its loss, an arrow at the rate chosen."""
    points = curve[:: max(1, len(curve) // rows)]
    top = max(loss for _, loss in points)
    nearest = min(points, key=lambda point: abs(math.log(point[0] / chosen)))
    lines = ["     rate      loss"]
    for lr, loss in points:
        mark = "  <- chosen" if (lr, loss) == nearest else ""
        lines.append(f"{lr:9.2e}  {loss:8.4f}  {'█' * max(1, round(width * loss / top))}{mark}")
    return "\n".join(lines)
