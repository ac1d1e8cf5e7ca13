"""What becomes of the questions of a transfer study: every one in every quantity, with an interval, corrected together.

Accuracies are paired over test rows; intervals cover other rows and other seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from weft.studies.experiments.text_tables.orderings import amount
from weft.studies.experiments.transfer_tables.design import Figures, Question
from weft.studies.statistics.intervals import Estimate, corrected, difference
from weft.studies.statistics.rows import Scores
from weft.studies.statistics.verdicts import ENOUGH, SIGNIFICANCE

Measured = Mapping[str, Mapping[str, Scores]]  # quantity, row -> (seeds, test rows)
NOTHING = Estimate(0.0, 0.0, 0.0, 1.0, 0.0, math.inf)


def judged(measured: Measured, asked: list[Question], published: Mapping[str, Figures]) -> list[dict[str, Any]]:
    """A verdict a question and quantity in which both rows were measured, or have published figures."""
    pairs = [(quantity, question) for quantity in measured for question in asked]
    pairs = [(q, one) for q, one in pairs if figures(published, q, one) or compared(measured[q], one) is not None]
    estimates = [compared(measured[quantity], question) for quantity, question in pairs]
    found = iter(corrected([value for value in estimates if value is not None]))
    both = [next(found) if value is not None else (None, 1.0) for value in estimates]
    return [
        verdict(q, one, value, p, seeds_of(measured[q], one), figures(published, q, one))
        for (q, one), (value, p) in zip(pairs, both, strict=True)
    ]


def compared(rows: Mapping[str, Scores], question: Question) -> Estimate | None:
    """First less second, or by how much more the first has gained; None where a row is missing."""
    names = [question.first, question.second, *(question.gains or ())]
    if any(name not in rows for name in names):
        return None
    first, second = rows[question.first], rows[question.second]
    if question.gains is not None:
        first, second = (gained(rows[after], rows[before]) for after, before in zip(names[:2], names[2:], strict=True))
    return difference(first, second)


def gained(after: Scores, before: Scores) -> Scores:
    """What each seed has gained, row by row."""
    count = min(len(after), len(before))
    return after[:count] - before[:count]


def seeds_of(rows: Mapping[str, Scores], question: Question) -> int:
    return min((len(rows[name]) for name in (question.first, question.second) if name in rows), default=0)


def figures(published: Mapping[str, Figures], quantity: str, question: Question) -> str:
    """The published figures of both rows, if both have one: `97.4 against 79.4`."""
    both = [published.get(name, {}).get(quantity) for name in (question.first, question.second)]
    return "" if None in both or question.gains else f"{both[0]:g} against {both[1]:g}"


def verdict(
    quantity: str, question: Question, value: Estimate | None, p: float, seeds: int, known: str
) -> dict[str, Any]:
    """One question as pages and terminals show it."""
    shown = value is not None and p < SIGNIFICANCE and seeds > 1
    what = "gains more than" if question.gains else "against"
    said = "; ".join(filter(None, (question.says, f"published {known}" if known else "")))
    asked = f"{quantity}, {question.first} {what} {question.second} ({said or 'nothing was published'})"
    if value is None:
        outcome, found = "not measured", "not measured, a row has no finished run"
    else:
        outcome = outcome_of(question, value, shown)
        found = f"{outcome}: {question.first} {amount(quantity, value)} {question.second}"
        found += "; one seed, so other seeds are not in the interval" if seeds < 2 else ""
        found += f"; preliminary: {seeds} seeds" if shown and seeds < ENOUGH else ""
    used = value or NOTHING
    return {"question": asked, "found": found, "sentence": f"{asked}: {found}", "outcome": outcome, "p": p,
            "quantity": quantity, "published": bool(said), "shown": shown, "preliminary": shown and seeds < ENOUGH,
            "mean": used.mean, "low": used.low, "high": used.high}  # fmt: skip


def outcome_of(question: Question, value: Estimate, shown: bool) -> str:
    """By the sign of the difference; where nothing was published it can only be shown or not."""
    if not shown:
        return "not shown"
    if not question.says:
        return "a difference is shown"
    return "confirmed" if value.mean > 0 else "contradicted"


def conclusion(orderings: list[dict[str, Any]]) -> str:
    """How many of the published statements held."""
    known = [one["outcome"] for one in orderings if one["published"]]
    counts = {word: known.count(word) for word in dict.fromkeys(known)}
    said = ", ".join(f"{count} {word}" for word, count in counts.items())
    return f"Of {len(known)} published statements, task by task: {said}." if known else "No statement could be judged."
