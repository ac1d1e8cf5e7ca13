"""Which published orders of throughput and cost hold on this machine: pairs of rows that learnt from the same data.

Times are compared by their logarithms, so that a difference is a ratio; intervals are over repeated timings (Student's
t), and corrected over all orderings together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from weft.studies.experiments.speed_tables.measure_row import MeasuredRow, Timed
from weft.studies.experiments.speed_tables.published_rows import ROWS, SpeedRow
from weft.studies.statistics.intervals import Estimate, corrected, difference, mean_of
from weft.studies.statistics.rows import Scores
from weft.studies.statistics.verdicts import SIGNIFICANCE

SPEED, TRAINING, COST = "images/s/core", "training images/s/core", "core-days"
DAY = 86400.0
Pair = tuple[str, SpeedRow, SpeedRow]


def logs(row: SpeedRow, record: MeasuredRow, quantity: str) -> Scores | None:
    """Logarithms of a quantity, timing by timing, (repeats, 1); None where it was not timed."""
    used: Timed = record.use if quantity == SPEED else record.training
    if not used.seconds:
        return None
    seconds = np.log(np.array(used.seconds)[:, None])
    return seconds + math.log(row.examples / DAY) if quantity == COST else -seconds


def interval(row: SpeedRow, record: MeasuredRow, quantity: str) -> dict[str, float] | None:
    """The mean of a quantity and its interval."""
    found = logs(row, record, quantity)
    if found is None:
        return None
    value = mean_of(found)
    return {"mean": math.exp(value.mean), "low": math.exp(value.low), "high": math.exp(value.high)}


def pairs() -> list[Pair]:
    """Rows of table 2 that learnt from the same data, two by two, the published higher one first."""
    known = [(one, other) for one, other in combinations(ROWS, 2) if one.data == other.data and one.table == 2]
    found: list[Pair] = []
    for quantity in (SPEED, COST):
        for pair in known:
            first, second = sorted(pair, key=lambda row: -published(row, quantity))
            found.append((quantity, first, second))
    return found


def published(row: SpeedRow, quantity: str) -> float:
    value = row.speed if quantity == SPEED else row.cost
    assert value is not None
    return value


def judge(records: Mapping[str, MeasuredRow]) -> list[dict[str, Any]]:
    """Every pair with its verdict, for the page and the terminal."""
    asked = pairs()
    estimates = [estimate(records, *pair) for pair in asked]
    found = iter(corrected([value for value in estimates if value is not None]))
    both = [next(found) if value is not None else (None, 1.0) for value in estimates]
    return [verdict(*pair, value, p) for pair, (value, p) in zip(asked, both, strict=True)]


def estimate(records: Mapping[str, MeasuredRow], quantity: str, first: SpeedRow, second: SpeedRow) -> Estimate | None:
    """The logarithm of how many times the first is the second."""
    if first.key not in records or second.key not in records:
        return None
    one, other = logs(first, records[first.key], quantity), logs(second, records[second.key], quantity)
    return None if one is None or other is None else difference(one, other)


def verdict(quantity: str, first: SpeedRow, second: SpeedRow, value: Estimate | None, p: float) -> dict[str, Any]:
    """One ordering as pages and terminals show it."""
    figures = f"{published(first, quantity):g} > {published(second, quantity):g}"
    question = f"{quantity}, {first.name} > {second.name} ({first.data}; published {figures})"
    shown = value is not None and p < SIGNIFICANCE
    if value is None:
        outcome, found = "not measured", "not measured: a row has no timings"
        value = Estimate(0.0, 0.0, 0.0, 1.0, 0.0, math.inf)
    else:
        outcome = ("confirmed" if value.mean > 0 else "contradicted") if shown else "not shown"
        ends = f"{times(value.low)}…{times(value.high)}"
        found = f"{outcome}: {first.name} has {times(value.mean)} times that of {second.name} (corrected 95 % {ends})"
    ends_of = {"mean": value.mean, "low": value.low, "high": value.high}
    return {"question": question, "found": found, "sentence": f"{question}: {found}", "outcome": outcome, "p": p,
            "quantity": quantity, "shown": shown, "preliminary": False, **ends_of}  # fmt: skip


def times(logarithm: float) -> str:
    return f"{math.exp(logarithm):.3g}"


def conclusion(orderings: list[dict[str, Any]]) -> str:
    """How many of the published orders hold, by quantity."""
    words = []
    for quantity in (SPEED, COST):
        outcomes = [found["outcome"] for found in orderings if found["quantity"] == quantity]
        counts = {word: outcomes.count(word) for word in dict.fromkeys(outcomes)}
        said = ", ".join(f"{count} {word}" for word, count in counts.items())
        words.append(f"{len(outcomes)} published orders of {quantity}: {said}")
    return "; ".join(words) + "."
