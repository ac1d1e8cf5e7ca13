"""How much more would settle it: seeds, or test rows, that would probably decide an undecided question.

If the difference that was seen is the true one, so many more seeds show it with a chance of 80 %, at the level that
Holm's correction leaves to the open questions. Seeds make a candidate's own variance smaller, never that over test
examples: where that alone is too large no number of seeds helps, and test rows are asked for instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from weft.studies.statistics.intervals import Estimate, leeway, satterthwaite
from weft.studies.statistics.verdicts import ENOUGH, SIGNIFICANCE, JudgedCandidate, Verdict, one_seed, unequal

POWER = 0.8
MOST_SEEDS = 200  # further ones, above which nobody waits for an answer
MARGIN = 1.1  # of the time that further seeds are expected to take, as runs are only begun where they end in time
SEEDS_BESIDE = 4 * ENOUGH  # further ones, at most, where test rows are wanted as well
MOST_ROWS = 1_000_000


@dataclass(frozen=True)
class Needed:
    """What an undecided question probably needs. Without `seeds` no number of them would do."""

    question: str
    seeds: int | None  # further ones of each candidate that has seeds
    rows: int | None  # test rows, or groups of them, in all, where these are the limit
    minutes: float | None  # that further seeds of all candidates take, where times of runs are known
    sentence: str


@dataclass(frozen=True)
class Pace:
    """What another seed of every candidate takes, as the command that adds one trains all of them."""

    seconds: Mapping[str, float] = field(default_factory=dict)  # of a candidate's training with one seed
    curve: int = 1  # runs of a seed: with a learning curve those on parts of the rows, too
    workers: int = 1  # runs side by side
    share: float = 1.0  # of the time of workers that went into training
    spent: float | None = None  # seconds of the comparison so far, where its time was given
    asked: bool = False  # by a command that takes --seeds
    test_rows: int = 0  # of the source, of which fewer may have been judged

    def minutes(self, candidates: Sequence[JudgedCandidate], more: int) -> float:
        """Those of so many further seeds."""
        each = math.fsum(self.seconds.get(candidate.name, 0.0) for candidate in candidates if not candidate.fixed)
        return more * each * self.curve / self.share / self.workers / 60

    def flags(self, seeds: int, minutes: float) -> str:
        """What to give the command for so many seeds in all."""
        if not self.asked:
            return ""
        time = "" if self.spent is None or not minutes else f" --time {math.ceil(self.spent / 60 + MARGIN * minutes)}m"
        return f": --seeds {seeds}{time}"

    def further_rows(self, now: int, wanted: int, seeds: int | None) -> str:
        """How to get at so many test rows, where the source has more of them than are judged now, and at so many
        `seeds` in all if there are to be more."""
        if not self.asked or self.test_rows <= now:
            return ""
        most = "" if self.test_rows >= wanted else f", and the source has {self.test_rows:,}"
        beside = "" if seeds is None else f"--seeds {seeds} "
        anew = "" if self.spent is None else f" --time {math.ceil(self.spent / 60)}m, or more, trains everything anew"
        return f"{most}: {beside}--test-rows {min(wanted, self.test_rows)}{anew}"


def settling(
    verdicts: Sequence[Verdict], candidates: Sequence[JudgedCandidate], pace: Pace | None = None
) -> list[Needed]:
    """What each undecided verdict needs."""
    known = {candidate.name: candidate for candidate in candidates}
    both = [(verdict, known[verdict.first], known[verdict.second]) for verdict in verdicts if not verdict.shown]
    level = SIGNIFICANCE / max(len(both), 1)  # unequal training counts in Holm's correction, but no more of it helps
    return [needed(verdict, a, b, level, candidates, pace or Pace()) for verdict, a, b in both if not unequal(a, b)]


def needed(
    verdict: Verdict,
    first: JudgedCandidate,
    second: JudgedCandidate,
    level: float,
    candidates: Sequence[JudgedCandidate],
    pace: Pace,
) -> Needed:
    """What one question needs."""
    question, learnt = verdict.question, [candidate for candidate in (first, second) if not candidate.fixed]
    now = min((len(candidate.scores) for candidate in learnt), default=1)

    def seeds(more: int, before: str, after: str) -> Needed:
        minutes = pace.minutes(candidates, more)
        said = f"{question}: {before}{of_seeds(more)}{after}{lasting(minutes)}{pace.flags(now + more, minutes)}"
        return Needed(question, more, None, minutes or None, said)

    if any(candidate.once for candidate in learnt):
        return seeds(1, "one repetition of a cross-validation tells little of others; ", " (a second repetition) first")
    if one_seed(first, second):
        return seeds(ENOUGH - now, "one seed tells nothing of others; ", " first")
    more_seeds = further_seeds(verdict.estimate, level)
    if more_seeds is not None:
        return seeds(more_seeds, "", " would probably decide it")
    return more_rows_needed(verdict, first.rows.drawn, level, pace, now)


def more_rows_needed(verdict: Verdict, drawn: int | None, level: float, pace: Pace, seeds: int) -> Needed:
    """What a question needs that no number of seeds decides, where there are so many `seeds`; `drawn` is the number of
    groups, if rows are of some."""
    found, question = enough_rows(verdict.estimate, level), verdict.question
    what = "test rows" if drawn is None else "groups of test rows"
    now = verdict.estimate.parts[0].count
    if found is None:
        said = f"{question}: neither seeds nor {what} would decide it at the difference seen, which is too small"
        return Needed(question, None, None, None, said)
    rows, more = found
    beside = f" with {of_seeds(more)} of each" if more else ""
    said = (
        f"{question}: no number of seeds would decide it, as {now:,} {what} are too few; about {rows:,}{beside} would"
    )
    if drawn is None:  # rows of groups are not counted one by one
        said += pace.further_rows(now, rows, seeds + more if more else None)
    return Needed(question, None, rows, None, said)


def further_seeds(estimate: Estimate, level: float) -> int | None:
    """The least number of further seeds of either candidate with enough power, or None if there is none."""
    return least(lambda more: power(estimate, level, more=more) >= POWER, MOST_SEEDS)


def enough_rows(estimate: Estimate, level: float) -> tuple[int, int] | None:
    """Test rows, to two digits, that would do, and with how many further seeds: as few as make five, or some more."""
    now = estimate.parts[0].count
    seeds = min((part.count for part in estimate.parts[1:] if part.value > 0), default=ENOUGH)
    for more in (max(ENOUGH - seeds, 0), SEEDS_BESIDE):
        found = least(lambda rows, more=more: power(estimate, level, more, now + rows) >= POWER, MOST_ROWS)  # type: ignore[misc]
        if found is not None:
            digits = 10 ** max(len(str(now + found)) - 2, 0)
            return math.ceil((now + found) / digits) * digits, more
    return None


def power(estimate: Estimate, level: float, more: int = 0, rows: int | None = None) -> float:
    """Chance that `more` seeds each, and so many test rows, show the difference that was seen."""
    from scipy.special import nctdtr, stdtrit

    examples, *seeds = estimate.parts
    scale = examples.count / rows if rows else 1.0
    spread = (examples.value * scale, max(examples.freedom / scale, 1.0))
    grown = [(part.value * part.count / (part.count + more), part.freedom + more) for part in seeds if part.value > 0]
    error, freedom = satterthwaite([spread, *grown])
    if error == 0 or estimate.mean == 0:
        return 0.0

    def chance(own: float, degrees: float, level: float) -> float:
        """That a value with `error` exceeds what an error of `own` with so many degrees of freedom asks for."""
        if own == 0:
            return 1.0
        asked = float(stdtrit(degrees, 1 - level / 2)) * own / error
        return float(1 - nctdtr(min(degrees, 1e6), abs(estimate.mean) / error, asked))

    own, degrees = satterthwaite(grown)
    return min(chance(error, freedom, level), chance(own, degrees, leeway(degrees) * level))


def least(enough: Callable[[int], bool], most: int) -> int | None:
    """The least number from 1 to `most` that is enough, given that more is never worse."""
    low, high = 0, 1
    while high < most and not enough(high):
        low, high = high, 2 * high
    high = min(high, most)
    if not enough(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def of_seeds(count: int) -> str:
    return f"{count} further seed{'s' if count > 1 else ''}"


def lasting(minutes: float) -> str:
    if not minutes:
        return ""
    return f" (about {minutes:,.0f} min)" if minutes >= 1 else " (less than a minute)"
