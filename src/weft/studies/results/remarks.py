"""What is said of candidates beside their figures: that runs learnt nothing, were lucky, or over-fitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.studies.results.answers import judge
from weft.studies.results.folds import runs_of
from weft.studies.results.load import Result, deciding
from weft.terminal import how_many
from weft.training.learnt import AGAINST_OVERFITTING, GUESSING, NOTHING, UNCERTAIN, overfitting

SEVERAL = 3  # candidates of which the same is said in one sentence
LACKING = {kind: kind.removeprefix("it has ") for kind in (NOTHING, UNCERTAIN)} | {
    GUESSING: "answers that are no better than a guess, though probabilities that tell the classes apart"
}
"""What candidates have, or have not done, by the beginning of what is said of one of their runs."""
Told = dict[str, dict[int, str]]  # candidate -> seed -> sentence


def in_one_sentence(told: Told, runs: dict[str, int]) -> list[str]:
    """What is said first where several candidates learnt nothing: who they are, and in how many runs if not in all."""
    parts = []
    for kind, lacking in LACKING.items():
        seen = {name: sum(kind_of(why) == kind for why in whys.values()) for name, whys in told.items()}
        if named := with_runs(seen, runs):
            have = "has" if len(named) == 1 else "have"
            parts.append(f"{how_many(len(named), 'candidate')} {have} {lacking}: {', '.join(named)}")
    return [f"{'; '.join(parts)}."]


def with_runs(seen: dict[str, int], runs: dict[str, int]) -> list[str]:
    """The candidates of which something was seen, with in how many runs if not in all."""
    return [f"{n} ({count} of {runs[n]} runs)" if count < runs[n] else n for n, count in seen.items() if count]


def kind_of(why: str) -> str:
    """Which of the things that are said of a run this is."""
    return next((kind for kind in (NOTHING, UNCERTAIN) if why.startswith(kind)), GUESSING)


def overfitted_of(record: dict[str, Any]) -> str | None:
    """What is said of over-fitting; of several folds, of the first that did."""
    return next((why for run in runs_of(record) if (why := overfitting(run))), None)


def overfitted(by_candidate: dict[str, list[Result]], runs: dict[str, int]) -> list[str]:
    """A sentence for each candidate that over-fitted; one for all where they are several."""
    told = said_of_runs(by_candidate, overfitted_of)
    if len(told) < SEVERAL:
        return list(by_first(told, runs).values())
    named = ", ".join(with_runs({name: len(whys) for name, whys in told.items()}, runs))
    return [
        f"over-fitting: {how_many(len(told), 'candidate')} end with a validation loss far above the training loss, or "
        f"rising while that one falls: {named}; {AGAINST_OVERFITTING}"
    ]


def said_of_runs(by_candidate: dict[str, list[Result]], judge: Callable[[Any], str | None]) -> Told:
    """What has to be said of runs, that they learnt nothing or over-fitted for instance."""
    found = {
        name: {result.seed: why for result in results if result.finished and (why := judge(result.record or {}))}
        for name, results in by_candidate.items()
    }
    return {name: told for name, told in found.items() if told}


def with_luck(told: Told, by_candidate: dict[str, list[Result]], classes: list[str]) -> Told:
    """The same, with what is said of candidates most of whose runs are no better than a guess on the test rows: the
    validation rows, which chose the best step, may have been lucky."""
    found = dict(told)
    for name, results in by_candidate.items():
        done = [result for result in results if result.finished]
        judged = {one.seed: judge(one.predictions or {}, deciding(done) == "r2", classes) for one in done}
        lucky = {seed: verdict.remark for seed, verdict in judged.items() if not verdict.learnt}
        if 2 * len(lucky) > len(done):
            found[name] = {**lucky, **told.get(name, {})}
    return found


def by_first(told: Told, runs: dict[str, int]) -> dict[str, str]:
    """A sentence by candidate: what is said of the first run concerned, and how many there are."""
    found = {}
    for name, whys in told.items():
        seeds = f" ({len(whys)} of {runs[name]} seeds, the first being {min(whys)})" if runs[name] > 1 else ""
        found[name] = f"{name}{seeds}: {whys[min(whys)]}"
    return found
