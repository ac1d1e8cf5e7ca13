"""Pseudo-examples: a few right and wrong answers that nobody gave, so that 30 of 30 right is no proof of 100 %.

Four of a mean (Agresti & Coull 1998) and two of a difference (Agresti & Min 2005), half of them on either side. Rows of
a group that are alike are worth fewer rows than they are, and pseudo-examples count accordingly more among the groups
(Korn & Graubard 1998).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from weft.studies.statistics.macro_f1 import f1_pseudo
from weft.studies.statistics.rows import Rows, Scores, balance, linear

Pseudo = tuple[Scores, Scores]  # values of pseudo-examples, and how many there are of each

NONE: Pseudo = (np.zeros(0), np.zeros(0))
BY_CANDIDATES: dict[int, Pseudo] = {
    1: (np.array([1.0, 0.0]), np.array([2.0, 2.0])),  # a mean: two right, two wrong
    2: (np.array([1.0, 0.0, -1.0]), np.array([0.5, 1.0, 0.5])),  # a difference: half of one each way, one without
}


def pseudo(candidates: Sequence[Scores], rows: Rows) -> Pseudo:
    """The pseudo-examples of a mean or of a difference: none unless answers are right or wrong."""
    added = BY_CANDIDATES[len(candidates)]
    if rows.f1_classes is not None:
        return f1_pseudo(rows.f1_classes, candidates, float(added[1].sum()))
    return added if all(right_or_wrong(scores, rows) for scores in candidates) else NONE


def right_or_wrong(scores: Scores, rows: Rows) -> bool:
    """Whether every score is that of a right or of a wrong answer: 1 or 0, by the weight of its class if it has one."""
    right = 1.0 if rows.classes is None else balance(rows.classes)
    return bool(((scores == 0) | np.isclose(scores, right)).all())


def per_row(candidates: Sequence[Scores]) -> Scores:
    """(examples,): means over the seeds of one candidate, or how far those of two are apart."""
    first, *others = (scores.mean(0) for scores in candidates)
    return np.asarray(first - sum(others))


def examples_a_row(candidates: Sequence[Scores], rows: Rows) -> float:
    """How much of an example a row is worth: all of it, or its part of a group.

    With 20 groups of ten rows it is a tenth where rows of a group are no more alike than others, and 1 where ten rows
    tell no more than one.
    """
    if rows.groups is None:
        return 1.0
    single, grouped = (
        per_row([linear(scores, one) for scores in candidates]) for one in (replace(rows, groups=None), rows)
    )
    least, spread = len(grouped) / len(single), float(single.var())
    if len(grouped) < 2 or spread == 0:
        return least
    return float(np.clip(grouped.var(ddof=1) / spread, least, 1.0))
