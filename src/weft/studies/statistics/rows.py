"""What is known of the test rows beside their scores, and what it makes of the scores.

Intervals take examples for independent, and the mean over them for the score. Neither holds everywhere, but `linear`
finds values for which both do: the score moves, to first order, as the mean of these values does (the influence
function). R² rests on a variance of targets that other rows would change, balanced accuracy on how many rows each class
has. The rows of a group (a patient, a document) were drawn together: then the groups are the examples, and each counts
by the sum of what its rows deviate from the mean (Liang & Zeger 1986).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.studies.statistics.target_spread import Values, influence

Codes = NDArray[np.int64]  # (examples,)
Scores = NDArray[np.float64]  # (seeds, examples)


@dataclass(frozen=True)
class Rows:
    """What is known of the test rows, which are the same for all candidates; but for `folds` (examples,) each."""

    targets: Values | None = None  # of a regression, where scores are those of R²
    classes: Codes | None = None  # where scores are those of balanced accuracy
    f1_classes: Codes | None = None  # where scores are those of macro-F1, linear as they come
    groups: Codes | None = None  # whose rows were drawn together
    folds: int | None = None  # where a row of the scores is a repetition of cross-validation with so many
    cut: Codes | None = None  # which of the folds tested each, where there is a single repetition

    @property
    def drawn(self) -> int | None:
        """How many groups were drawn; None where rows are on their own."""
        return None if self.groups is None else len(np.unique(self.groups))


def balance(classes: NDArray[Any]) -> Values:
    """The weight of each example in balanced accuracy: every class has as much of it as any other."""
    _, which, counts = np.unique(classes, return_inverse=True, return_counts=True)
    return np.asarray(len(classes) / (len(counts) * counts[which]), dtype=np.float64)


def linear(scores: Values, rows: Rows) -> Values:
    """Values (seeds, examples or groups) with the means of the scores, and the variance that the score itself has."""
    used = influence(scores, rows.targets)
    if rows.classes is not None:
        used = scores - class_means(scores, rows.classes) + scores.mean(1, keepdims=True)
    return used if rows.groups is None else by_group(used, rows.groups)


def class_means(scores: Values, classes: Codes) -> Values:
    """(seeds, examples): the mean score of each example's class."""
    _, which, counts = np.unique(classes, return_inverse=True, return_counts=True)
    return np.stack([np.bincount(which, row)[which] / counts[which] for row in scores])


def by_group(values: Values, groups: Codes) -> Values:
    """(seeds, groups): the same means, and deviations that are the sums of those of the rows."""
    _, which, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    means = values.mean(1, keepdims=True)
    sums = np.stack([np.bincount(which, row) for row in values])
    return np.asarray((sums - means * sizes) * len(sizes) / len(groups) + means)
