"""Intervals for what is counted on a few examples: a share, and the change of a share on the same examples."""

from __future__ import annotations

from math import sqrt

NORMAL = 1.959964  # of the normal distribution, 95 % lie within so many standard deviations

Ends = tuple[float, float]


def share_interval(right: float, count: int) -> Ends:
    """The 95 % interval of a share of `right` out of `count` examples (Wilson 1927)."""
    square = NORMAL**2
    middle = (right + square / 2) / (count + square)
    half = NORMAL / (count + square) * sqrt(right * (count - right) / count + square / 4)
    return max(0.0, middle - half), min(1.0, middle + half)


def change_interval(gained: float, lost: float, count: int) -> Ends:
    """The 95 % interval of the change of a share, where of the same `count` examples `gained` became right and `lost`
    wrong: Wald's after half an example is added to each of the four cells (Agresti & Min 2005), which holds its
    level on few examples too."""
    more, fewer, total = gained + 0.5, lost + 0.5, count + 2
    middle = (more - fewer) / total
    half = NORMAL * sqrt(more + fewer - (more - fewer) ** 2 / total) / total
    return max(-1.0, middle - half), min(1.0, middle + half)
