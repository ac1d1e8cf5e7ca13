"""Which orderings of a table are confirmed, contradicted, or not shown by what was measured.

The published order of two candidates is taken from their figures. Perplexities are compared by their logarithms, paired
over held-out sequences, accuracies paired over examples; intervals and p-values are those of any comparison, corrected
over all orderings of an experiment together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from weft.studies.experiments.text_tables.design import PERPLEXITY, Figures
from weft.studies.statistics.intervals import Estimate, corrected, difference
from weft.studies.statistics.rows import Scores
from weft.studies.statistics.verdicts import ENOUGH, SIGNIFICANCE

Outcome = Literal["confirmed", "contradicted", "not shown", "not measured"]
ScoresByQuantity = Mapping[str, Mapping[str, Scores]]  # quantity, candidate -> log-perplexities, or right or wrong


@dataclass(frozen=True)
class Ordering:
    """Two candidates of a table and what became of their order; `estimate` is first minus second."""

    quantity: str
    first: str
    second: str
    published: tuple[float, float] | None
    estimate: Estimate | None
    adjusted: float
    seeds: int

    @property
    def shown(self) -> bool:
        """Whether the difference is more than chance; of one seed each it speaks of two networks, not of two kinds."""
        return self.estimate is not None and self.adjusted < SIGNIFICANCE and self.seeds > 1

    @property
    def outcome(self) -> Outcome:
        """By the sign of the difference; without published figures it can only be shown or not."""
        if self.estimate is None:
            return "not measured"
        if not self.shown:
            return "not shown"
        if self.published is None:
            return "confirmed"
        agrees = (self.published[0] > self.published[1]) == (self.estimate.mean > 0)
        return "confirmed" if agrees else "contradicted"

    @property
    def sentence(self) -> str:
        """The verdict in words, with its interval."""
        return f"{self.claim}: {self.found}"

    @property
    def claim(self) -> str:
        """What the table says of the two."""
        if self.published is None:
            return f"{self.quantity}, {self.first} against {self.second} (not in the table)"
        sign = ">" if self.published[0] > self.published[1] else "<"
        figures = f"{self.published[0]:g} {sign} {self.published[1]:g}"
        return f"{self.quantity}, {self.first} {sign} {self.second} (published {figures})"

    @property
    def found(self) -> str:
        if self.estimate is None:
            return "not measured, a candidate has no finished run"
        few = f"; preliminary: {self.seeds} seeds" if self.shown and self.seeds < ENOUGH else ""
        few = few if self.seeds > 1 else "; one seed, so other seeds are not in the interval"
        word = "a difference is shown" if self.shown and self.published is None else self.outcome
        return f"{word}: {self.first} {amount(self.quantity, self.estimate)} {self.second}{few}"

    def as_row(self) -> dict[str, Any]:
        """For JSON and pages."""
        value = self.estimate or Estimate(0.0, 0.0, 0.0, 1.0, 0.0, math.inf)
        return {
            "question": self.claim,
            "sentence": self.sentence,
            "found": self.found,
            "outcome": self.outcome,
            "quantity": self.quantity,
            "shown": self.shown,
            "preliminary": self.shown and self.seeds < ENOUGH,
            "p": self.adjusted,
            **{key: number for key, number in asdict(value).items() if key in ("mean", "low", "high")},
        }


def judge_orderings(
    measured: ScoresByQuantity, figures: Mapping[str, Figures], pairs: list[tuple[str, str]], quantities: list[str]
) -> list[Ordering]:
    """Every pair in every quantity, corrected together."""
    asked = [(quantity, first, second) for quantity in quantities for first, second in pairs]
    asked = [question for question in asked if may_be_asked(measured, figures, question)]
    estimates = [scored_difference(measured, question) for question in asked]
    found = iter(corrected([value for value in estimates if value is not None]))
    both = [next(found) if value is not None else (None, 1.0) for value in estimates]
    return [
        Ordering(
            quantity,
            first,
            second,
            published_of(figures, quantity, first, second),
            value,
            adjusted,
            min((len(measured[quantity][name]) for name in (first, second) if value is not None), default=0),
        )
        for (quantity, first, second), (value, adjusted) in zip(asked, both, strict=True)
    ]


def may_be_asked(measured: ScoresByQuantity, figures: Mapping[str, Figures], question: tuple[str, str, str]) -> bool:
    """Whether there is something to say: figures to confirm, or two candidates that were measured."""
    quantity, first, second = question
    known = measured.get(quantity, {})
    return published_of(figures, *question) is not None or (first in known and second in known)


def scored_difference(measured: ScoresByQuantity, question: tuple[str, str, str]) -> Estimate | None:
    quantity, first, second = question
    known = measured.get(quantity, {})
    return difference(known[first], known[second]) if first in known and second in known else None


def published_of(figures: Mapping[str, Figures], quantity: str, first: str, second: str) -> tuple[float, float] | None:
    """The two published figures, if both have one."""
    both = [figures.get(name, {}).get(quantity) for name in (first, second)]
    return (both[0], both[1]) if both[0] is not None and both[1] is not None else None


def amount(quantity: str, value: Estimate) -> str:
    """By how much the first is above or below the second: `+3.2 % (corrected 95 % interval 1.0…5.5) above`."""
    if quantity == PERPLEXITY:
        mean, low, high = (100 * math.expm1(part) for part in (value.mean, value.low, value.high))
        unit = " %"
    else:
        mean, low, high = (100 * part for part in (value.mean, value.low, value.high))
        unit = " points"
    side = "above" if mean >= 0 else "below"
    digits = 1 if max(abs(low), abs(high)) < 100 else 0
    ends = f"{low:+.{digits}f}…{high:+.{digits}f}".replace("-", "−")
    return f"{abs(mean):.{digits}f}{unit} (corrected 95 % interval {ends}) {side}"


def conclusion(orderings: list[Ordering]) -> str:
    """How many of the published orderings held."""
    known = [ordering for ordering in orderings if ordering.published is not None]
    if not known:
        return "No published ordering can be judged by these tasks; SST-2 and MNLI are the table's."
    counts = {word: sum(o.outcome == word for o in known) for word in ("confirmed", "contradicted", "not shown")}
    missing = len(known) - sum(counts.values())
    words = [f"{count} {word}" for word, count in counts.items()] + ([f"{missing} not measured"] if missing else [])
    return f"Of {len(known)} published orderings {', '.join(words)}."
