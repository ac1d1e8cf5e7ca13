"""Macro-F1 as a mean over test rows, around which intervals can be drawn as around an accuracy.

The F1 of a class is 2·hits/(rows of the class + answers that name it), and macro-F1 the mean over the classes that
occur or are answered. It is a ratio of counts, so no row has an F1; but a row moves it, to first order, by what it adds
to the counts above and below (the influence function). `f1_scores` are these moves around the macro-F1 itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def f1_scores(targets: NDArray[Any], answers: NDArray[Any]) -> Values:
    """(examples,): their mean is the macro-F1, their spread that of macro-F1 over test rows."""
    numbers, codes = np.unique(np.stack([targets, answers]), return_inverse=True)
    wanted, said = codes.reshape(2, -1)
    right, count = wanted == said, len(numbers)
    either = np.bincount(wanted, minlength=count) + np.bincount(said, minlength=count)
    f1 = 2 * np.bincount(wanted[right], minlength=count) / either
    weight = len(wanted) / (count * either)
    lost = f1 * weight  # by being named or being of a class, which a hit makes up for
    return np.asarray(f1.mean() + 2 * right * weight[wanted] - lost[wanted] - lost[said])


def f1_pseudo(classes: NDArray[Any], candidates: Sequence[Values], extra: float) -> tuple[Values, Values]:
    """Values and weights of `extra` pseudo-rows, for one macro-F1 or for a difference of two.

    They are shared among the classes as those of balanced accuracy are, half of them right. A wrong one costs its own
    class a hit and another a false alarm; what either moves is taken for a candidate that names each class as often as
    it occurs. `candidates` are scores (seeds, examples).
    """
    counts = np.unique(classes, return_counts=True)[1]
    share = extra / len(counts)
    weight = (len(classes) + extra) / (2 * len(counts) * (counts + share))
    right, wrong = [], []
    for scores in candidates:
        lost = known(scores, classes) * weight
        right.append(scores.mean() + 2 * (weight - lost))
        wrong.append(scores.mean() - lost - (lost.sum() - lost) / max(len(counts) - 1, 1))
    if len(candidates) == 1:
        found = [right[0], wrong[0]]
    else:
        found = [first - second for first in (right[0], wrong[0]) for second in (right[1], wrong[1])]
    return np.concatenate(found), np.full(len(found) * len(counts), share / len(found))


def known(scores: Values, classes: NDArray[Any]) -> Values:
    """(classes,): how much of each class is known. A score is below the mean exactly where the answer is wrong, but for
    classes that are never right."""
    right = (scores >= scores.mean(1, keepdims=True) - 1e-9).mean(0)
    _, which, counts = np.unique(classes, return_inverse=True, return_counts=True)
    return np.asarray(np.bincount(which, right) / counts)
