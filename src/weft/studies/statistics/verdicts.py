"""What a comparison says, in plain language, and never more than its numbers do.

Which candidate stands for a group is chosen by the validation split; it is then judged on the test split, which had no
part in the choice. A difference is claimed when its Holm-corrected p-value over all questions is below 5 %, and is
called preliminary below five seeds. One seed claims nothing of how another training would end: then two networks are
compared, not two families. Everything else is "no difference shown". Intervals are widened by the same correction, so
that one leaves 0 out exactly where a difference is claimed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from weft.studies.statistics.intervals import PLAIN, Estimate, corrected, difference, holm
from weft.studies.statistics.rows import Rows, Scores
from weft.terminal import how_many

Group = Literal["attention", "convolution", "mlp", "recurrent", "hybrid", "control", "classical"]

ENOUGH = 5  # seeds for a claim that is not called preliminary
SIGNIFICANCE = 0.05
ALIKE = 1.1  # times the least cost, up to which costs are the same: speeds in use are measured, and seldom closer
CONTROLS = ("identity", "random")  # mixers that learn nothing


@dataclass(frozen=True)
class JudgedCandidate:
    """A candidate as the statistics see it: scores (seeds, examples) on the test split, and its validation metric."""

    name: str
    group: Group
    scores: Scores
    validation: float  # mean metric on the validation split
    cost: float = 0.0  # what "cheapest" goes by
    tokens: bool = False  # whether it mixes tokens, so that the controls stand beside it
    fixed: bool = False  # no seed changes it
    trained: float = 0.0  # examples that a run was to see; 0 where that is no measure of it
    pretrained: bool = False  # whether it starts from weights that were trained before
    rows: Rows = PLAIN  # what is known of the examples
    mixer: str = ""  # what mixes its tokens, by which the controls are known

    @property
    def networks(self) -> int:
        """How many were trained for its scores."""
        return len(self.scores) * (self.rows.folds or 1)

    @property
    def once(self) -> bool:
        """Whether the rows were cut into folds once, so that little is known of how another training would end."""
        return self.rows.folds is not None and len(self.scores) < 2


UNEQUAL = 1.25  # factor between the examples that two candidates saw, from which on nothing is concluded


def unequal(first: JudgedCandidate, second: JudgedCandidate) -> bool:
    """Whether one was trained so much longer that a difference may be due to that alone."""
    less, more = sorted((first.trained, second.trained))
    return less > 0 and more > UNEQUAL * less


@dataclass(frozen=True)
class Verdict:
    """An answered question. `adjusted` is the p-value after Holm's correction."""

    question: str
    first: str
    second: str
    estimate: Estimate
    adjusted: float
    shown: bool
    preliminary: bool
    sentence: str
    alone: bool = False  # of two networks, not of two ways to train
    unequal: bool = False  # training was, so that nothing is concluded


def best(candidates: Iterable[JudgedCandidate]) -> JudgedCandidate | None:
    """The candidate that the validation split puts first."""
    return max(candidates, key=lambda candidate: candidate.validation, default=None)


def questions(candidates: list[JudgedCandidate]) -> list[tuple[str, str, JudgedCandidate, JudgedCandidate]]:
    """(question, how the second is called, first, second) for every question that these candidates can answer.

    What was trained before is asked about once, against the best from scratch; all else is among those from scratch.
    """
    networks = [candidate for candidate in candidates if candidate.group not in ("control", "classical")]
    scratch = [candidate for candidate in networks if not candidate.pretrained]
    before = best(candidate for candidate in networks if candidate.pretrained) if scratch else None
    scratch = scratch or networks  # all of them trained before: then they are equals again

    def of(*groups: Group) -> JudgedCandidate | None:
        return best(candidate for candidate in scratch if candidate.group in groups)

    def control(mixer: str) -> JudgedCandidate | None:
        return best(candidate for candidate in candidates if candidate.group == "control" and candidate.mixer == mixer)

    perceptron, mixing, top = of("mlp"), best(candidate for candidate in scratch if candidate.tokens), best(scratch)
    classical = best(candidate for candidate in candidates if candidate.group == "classical")
    asked = [
        ("pre-training", "the best network from scratch", before, top),
        ("attention", "the best MLP", of("attention"), perceptron),
        ("convolution", "the best MLP", of("convolution"), perceptron),
        ("token mixing", "no mixing at all", mixing, control("identity")),
        ("learned mixing", "fixed random mixing", mixing, control("random")),
        ("a network", "the classical baseline", top, classical),
    ]
    return [(question, what, a, b) for question, what, a, b in asked if a is not None and b is not None and a is not b]


def apart(first: JudgedCandidate, second: JudgedCandidate) -> Estimate:
    """The difference of two candidates."""
    known = {name: getattr(second.rows, name) for name in ("cut", "groups") if getattr(first.rows, name) is None}
    return difference(first.scores, second.scores, replace(first.rows, **known))


def answer(candidates: list[JudgedCandidate], unit: str, match: str) -> list[Verdict]:
    """A verdict for every question, corrected together."""
    asked = questions(candidates)
    estimates = corrected([apart(first, second) for _, _, first, second in asked])
    return [
        judge(question, what, first, second, estimate, p, unit, match)
        for (question, what, first, second), (estimate, p) in zip(asked, estimates, strict=True)
    ]


def judge(
    question: str,
    what: str,
    first: JudgedCandidate,
    second: JudgedCandidate,
    estimate: Estimate,
    p: float,
    unit: str,
    match: str,
) -> Verdict:
    """The verdict on one difference, as a sentence."""
    shown = p < SIGNIFICANCE
    alone = one_seed(first, second)
    preliminary = shown and not alone and too_few(first, second)
    own_size = "classical" in (first.group, second.group) or first.pretrained != second.pretrained
    equal = "" if own_size else matched(match)
    change = f"{signed(estimate.mean, unit)} {what}{equal} ({first.name} against {second.name})"
    interval = f"corrected 95 % interval {spread(estimate, unit)}"
    if unequal(first, second):
        longer = max(first.trained, second.trained) / min(first.trained, second.trained)
        shown = preliminary = False
        text = f"nothing to conclude, as training was unequal by a factor of {longer:.3g}: {change}, {interval}"
    elif alone:
        text = f"{of_two(shown, change)}, {interval}; one seed does not tell how another training would end"
        shown = False
    elif shown:
        few = f"; preliminary: {why_few(first, second)}" if preliminary else ""
        text = f"{change}, {interval}{few}"
    else:
        text = f"no difference shown: {change}, {interval}"
    sentence, untold = f"{question}: {text}", unequal(first, second)
    return Verdict(question, first.name, second.name, estimate, p, shown, preliminary, sentence, alone, untold)


def of_two(shown: bool, change: str) -> str:
    """A difference between two networks, of which other seeds would make others."""
    return f"for these two networks alone: {change}" if shown else f"no difference shown between two networks: {change}"


def recommend(
    candidates: list[JudgedCandidate], verdicts: Iterable[Verdict] = (), guessing: Collection[str] = ()
) -> str:
    """Which candidate to use: the cheapest of those that no other is shown to be better than, here or in a verdict, or
    leads by more than a standard error: what seeds scatter most is shown least, and is no better for it. A single seed,
    which may be a lucky one, shows and leads nobody where any candidate has several, but is named where it is ahead.

    Those of `guessing`, whose answers are no better than a guess in some run, are compared but never advised; nor are
    the two controls, which show what a token network does without learned mixing.
    """
    able = [candidate for candidate in without_controls(candidates) if candidate.name not in guessing]
    leader = best(able)
    if leader is None:
        return no_learner(candidates)
    if len(candidates) < 2:
        return ""
    longer = sorted(candidate.name for candidate in able if unequal(leader, candidate))
    if longer:
        return (
            f"No recommendation: {leader.name} is ahead on the validation split, but {', '.join(longer)} "
            f"{'was' if len(longer) == 1 else 'were'} trained for another length; compare them at equal length first."
        )
    worse = shown_worse(candidates) | losers(candidates, verdicts)
    standing = [candidate for candidate in able if candidate.name not in worse]
    if not standing:
        top = max(able, key=lambda candidate: float(candidate.scores.mean()))
        said = "No recommendation: each candidate that may be advised is shown to be worse than another."
        return said + ahead_of(top, candidates, able, "the best of them")
    if len(able) == 1:
        only = f"Use {leader.name}: the only candidate that is {demands(candidates, able)}."
        return only + ahead_of(leader, candidates, able) + caution(candidates)
    return advised(standing, candidates, able, worse) + caution(candidates)


def no_learner(candidates: list[JudgedCandidate]) -> str:
    """Why nothing is advised where all that may be are no better than a guess in some run."""
    if not candidates:
        return ""
    learnt = "no candidate" if without_controls(candidates) == candidates else "no candidate but a control"
    return f"No recommendation: {learnt} has been shown to be better than a constant guess in all of its runs."


def advised(
    standing: list[JudgedCandidate], candidates: list[JudgedCandidate], able: list[JudgedCandidate], worse: set[str]
) -> str:
    """The cheapest of the best of `standing`, which none is shown to be better than, and why; `able` are all that may
    be advised, and `worse` what another is shown to be better than."""
    counts = told_by(candidates)
    close = [
        candidate
        for candidate in standing
        if not any(counts(other, candidate) and leads(other, candidate) for other in standing)
    ]
    least = min(candidate.cost for candidate in close)
    cheap = [candidate for candidate in close if candidate.cost <= ALIKE * least]
    cheapest = max(cheap, key=lambda candidate: float(candidate.scores.mean()))
    lucky = [each for each in able if leads(each, cheapest) and not counts(each, cheapest)]
    untold = any(leads(each, other) and not counts(each, other) for each in able for other in close)
    none = "none of several seeds" if untold else "none"
    ahead = ahead_of(cheapest, candidates, able)
    rivals = len(standing) == 1 and any(each not in able and each.name not in worse for each in candidates)
    among = f"of the candidates that are {demands(candidates, able)}, " if ahead or rivals else ""
    ahead += f" Ahead of it, with one seed: {names(lucky)}." if lucky else ""
    if len(standing) == 1:
        return f"Use {cheapest.name}: {among}the only one that {none} is shown to be better than.{ahead}"
    behind = [candidate for candidate in standing if candidate not in [*close, *lucky]]
    verb = "is" if len(behind) == 1 else "are"
    rest = f"; {names(behind)} {verb} further behind, though not shown to be worse" if behind else ""
    if len(close) == 1:
        return f"Use {cheapest.name}: {among}the only one that {none} leads by more than a standard error{rest}.{ahead}"
    equals = names(candidate for candidate in close if candidate not in [cheapest, *lucky])
    which = f"{among}{'the cheapest' if len(cheap) == 1 else 'the best of the cheapest'}"
    level = f"{which} of those that {none} leads by more than a standard error{f' ({equals})' if equals else ''}"
    return f"Use {cheapest.name}: {level}{rest}.{ahead}"


def demands(candidates: list[JudgedCandidate], able: list[JudgedCandidate]) -> str:
    """What sets those that may be advised apart from the others."""
    controls = [is_control(candidate) for candidate in candidates if candidate not in able]
    return " and ".join(["no control"] * any(controls) + ["better than a guess in every run"] * (not all(controls)))


def ahead_of(
    candidate: JudgedCandidate, candidates: list[JudgedCandidate], able: list[JudgedCandidate], called: str = "it"
) -> str:
    """A sentence on those that may not be advised and lead the one that is, if there are such."""
    counts = told_by(candidates)
    why = {True: "a control", False: "no better than a guess in some run"}
    told = sorted(
        f"{each.name} ({why[is_control(each)]}{'' if counts(each, candidate) else ', with one seed'})"
        for each in candidates
        if each not in able and leads(each, candidate)
    )
    return f" Ahead of {called}, and never advised: {', '.join(told)}." if told else ""


def is_control(candidate: JudgedCandidate) -> bool:
    """Whether it is one of the two that show what a token network does without learned mixing."""
    return candidate.mixer in CONTROLS


def without_controls(candidates: list[JudgedCandidate]) -> list[JudgedCandidate]:
    """The candidates that somebody would use; all where there are no others."""
    return [candidate for candidate in candidates if not is_control(candidate)] or candidates


def leads(first: JudgedCandidate, second: JudgedCandidate) -> bool:
    """Whether one is ahead of another by more than the standard error of their difference."""
    if first is second or unequal(first, second):
        return False
    estimate = apart(first, second)
    return estimate.mean > estimate.error


def names(candidates: Iterable[JudgedCandidate]) -> str:
    return ", ".join(sorted(candidate.name for candidate in candidates))


def caution(candidates: list[JudgedCandidate]) -> str:
    """What advice from few seeds is worth."""
    once = [candidate for candidate in candidates if one_seed(candidate)]
    if once and len(once) == len([candidate for candidate in candidates if not candidate.fixed]):
        return " One seed: this is about these networks, not about how another training would end."
    few = " Preliminary: few seeds." if too_few(*(each for each in candidates if each not in once)) else ""
    return few + (f" One seed of {names(once)}: another training of it may end elsewhere." if once else "")


def told_by(candidates: list[JudgedCandidate]) -> Callable[[JudgedCandidate, JudgedCandidate], bool]:
    """Whether it tells something that the first is better than the second: training was equal, and the first, where any
    candidate has several seeds, has several too: a single one may be a lucky one."""
    several = any_of_several(candidates)
    return lambda better, worse: not unequal(better, worse) and not (several and one_seed(better))


def any_of_several(candidates: Iterable[JudgedCandidate]) -> bool:
    """Whether any candidate that seeds change was trained with several."""
    return any(not one_seed(candidate) for candidate in candidates if not candidate.fixed)


def shown_worse(candidates: list[JudgedCandidate]) -> set[str]:
    """Those that another is shown to be better than, corrected over all pairs."""
    pairs, counts = list(itertools.combinations(candidates, 2)), told_by(candidates)
    estimates = [apart(first, second) for first, second in pairs]
    ordered = [pair if e.mean > 0 else pair[::-1] for pair, e in zip(pairs, estimates, strict=True)]
    return {
        worse.name
        for (better, worse), p in zip(ordered, holm([e.p for e in estimates]), strict=True)
        if p < SIGNIFICANCE and counts(better, worse)
    }


def losers(candidates: list[JudgedCandidate], verdicts: Iterable[Verdict]) -> set[str]:
    """Those that a verdict, corrected over fewer questions than there are pairs, shows to be worse: advice must not
    contradict it."""
    known, counts = {candidate.name: candidate for candidate in candidates}, told_by(candidates)
    shown = [verdict for verdict in verdicts if verdict.adjusted < SIGNIFICANCE]
    ordered = [(v.first, v.second) if v.estimate.mean > 0 else (v.second, v.first) for v in shown]
    return {worse for better, worse in ordered if counts(known[better], known[worse])}


def one_seed(*candidates: JudgedCandidate) -> bool:
    """Whether one of them was trained once, though another seed would make another network of it."""
    return any(candidate.networks < 2 and not candidate.fixed for candidate in candidates)


def too_few(*candidates: JudgedCandidate) -> bool:
    """Whether there are too few networks of one of them; the folds of a single cut of the rows are such, too."""
    learnt = [candidate for candidate in candidates if not candidate.fixed]
    return any(candidate.networks < ENOUGH or candidate.once for candidate in learnt)


def why_few(*candidates: JudgedCandidate) -> str:
    if folds := next((candidate.rows.folds for candidate in candidates if candidate.rows.folds), None):
        needed = max(2, math.ceil(ENOUGH / folds))
        return f"{how_many(seeds(*candidates), 'repetition')} of a cross-validation, {needed} are needed"
    return f"{how_many(seeds(*candidates), 'seed')}, {ENOUGH} are needed"


def seeds(*candidates: JudgedCandidate) -> int:
    return min(len(candidate.scores) for candidate in candidates if not candidate.fixed)


def matched(match: str) -> str:
    """How the candidates were made equal, for a sentence."""
    words = {"params": "parameters", "macs": "multiply-adds", "time": "training time"}
    return f" at equal {words[match]}" if match in words else ""


def signed(value: float, unit: str) -> str:
    """A difference in words: `+1.9 points over`, `0.4 points below`; without points where the metric is no share."""
    points = " points" if unit == "points" else ""
    if value < 0:
        return f"{number(-value, unit)}{points} below"
    return f"+{number(value, unit)}{points} over"


def spread(estimate: Estimate, unit: str) -> str:
    return f"{number(estimate.low, unit)}…{number(estimate.high, unit)}"


def number(value: float, unit: str) -> str:
    """A score in its unit, with a true minus."""
    scaled, digits = (100 * value, 1) if unit == "points" else (value, 3)
    return f"{scaled:.{digits}f}".replace("-", "−")
