"""The learning-rate finder (Smith 2017): raise the rate exponentially, watch the loss, stop when it blows up."""

from __future__ import annotations

import math
from collections.abc import Callable

STEPS, FEWEST = 100, 20  # of a search; with fewer than four a decade the lowest loss is hit by chance
DECADES = 5  # from a thousandth of the optimiser's usual rate to a hundred times it
SMOOTHING = 0.9
BLOWN_UP = 2.0  # times the first loss
MARGIN = 10  # the rate at the lowest loss is the edge; a tenth of it trains (Smith 2017, Howard & Gugger 2020)

Curve = list[tuple[float, float]]


def find_rate(step: Callable[[int, float], float], usual: float, steps: int = STEPS) -> tuple[float, Curve]:
    """The rate to use and the curve (rate, smoothed loss) it was read from; `step(number, lr)` returns a loss.

    Fewer `steps` span the same rates, smoothed over as many decades. Changes the weights: the caller puts them back.
    """
    curve: Curve = []
    average, first, keep = 0.0, math.inf, SMOOTHING ** (STEPS / steps)
    for number in range(steps):
        lr = usual * 10 ** (DECADES * number / (steps - 1) - 3)
        loss = step(number, lr)
        average = keep * average + (1 - keep) * loss
        smoothed = average / (1 - keep ** (number + 1))
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
