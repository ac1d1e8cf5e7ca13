"""Has a network learnt anything? Decided here alone, for every kind of run, on answers to the validation split.

Classes: the Matthews correlation of answers and targets, which is 0 for whatever answer does not depend on the input,
however unequal the classes are. Numbers: the share of the squared error of the training mean that is gone. Words: the
perplexity beside that of guessing words by their frequency. Each with a 95 % interval over the examples, and learnt is
what the whole interval says. Two classes may also be told apart by their probabilities, though one is always answered.
What is read from records needs no torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

    from weft.nn.losses import Task

REPEATS = 400  # draws of a bootstrap: the tenth from either end bounds 95 %
SIGMAS = 1.96
NOTHING = "it has not learnt anything"
UNCERTAIN = "it has not been shown to have learnt anything"

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Learnt:
    """The judgement: what was measured, with its interval, what a guess would have, and what follows."""

    measure: str
    value: float
    low: float
    high: float
    guess: float
    rows: int
    learnt: bool
    remark: str = ""  # a sentence, where there is something to say

    def as_dict(self) -> dict[str, Any]:
        """For the record; numbers that are none are left out."""
        return {k: v for k, v in asdict(self).items() if not isinstance(v, float) or math.isfinite(v)}


def judge_answers(
    task: Task, answers: Tensor, targets: Tensor, classes: Sequence[str], centre: float, rows: str = "validation rows"
) -> Learnt:
    """Judge answers (n, K), or (n, 1) for binary and regression, to targets (n,); `centre` is the training mean."""
    from weft.training.metrics import class_probabilities  # loads torch

    if task == "regression":
        predicted, wanted = (value.double().flatten().numpy() for value in (answers, targets))
        return judge_numbers(predicted, wanted, centre, rows)
    probabilities = class_probabilities(task, answers)
    said, wanted = probabilities.argmax(1).numpy(), targets.long().numpy()
    size = max(len(classes), int(max(said.max(initial=0), wanted.max(initial=0))) + 1)
    counts = np.bincount(wanted * size + said, minlength=size * size).reshape(size, size)
    found = judge_confusion(counts, classes, rows)
    if found.learnt or task != "binary" or not bool(probabilities.isfinite().all()):
        return found
    return ranked(found, probabilities[:, 1].numpy(), wanted)


def judge_confusion(counts: Any, classes: Sequence[str] = (), rows: str = "test rows") -> Learnt:
    """Judge how often each true class (down) got each answer (across)."""
    matrix = np.asarray(counts, dtype=np.float64)
    total, value = int(matrix.sum()), matthews_of(matrix)
    true, said = np.nonzero(matrix)
    share, draw = matrix[true, said] / max(total, 1), np.random.default_rng(0)

    def drawn() -> float:
        again = draw.multinomial(total, share)
        sums = (np.bincount(side, again, len(matrix)) for side in (true, said))
        return matthews_from(again[true == said].sum(), *sums)

    low, high = interval(drawn)
    sides = f"a Matthews correlation of {value:.3f} ({low:.3f} to {high:.3f}) on {total:,} {rows}, where a guess has 0"
    if len(np.unique(said)) == 1 and total:
        only = repr(classes[said[0]]) if len(classes) > said[0] else f"class {said[0]}"
        sides = f"every answer to the {total:,} {rows} is {only}"
    return made("matthews", value, low, high, 0.0, total, low > 0, sides)


def matthews_of(confusion: NDArray[Any]) -> float:
    """Correlation of answers with targets, in [-1, 1], of how often each true class (down) got each answer (across)."""
    counts = np.asarray(confusion, dtype=np.float64)
    return matthews_from(float(np.trace(counts)), counts.sum(1), counts.sum(0))


def matthews_from(right: float, true: NDArray[Any], said: NDArray[Any]) -> float:
    """The same of the number of right answers, and how often each class occurs (K,) and is answered (K,)."""
    total = true.sum()
    spread = (total**2 - (true**2).sum()) * (total**2 - (said**2).sum())
    return float((right * total - true @ said) / math.sqrt(spread)) if spread > 0 else 0.0


def ranked(found: Learnt, chances: Values, wanted: NDArray[Any]) -> Learnt:
    """The same judgement, unless the probabilities put one class before the other more often than luck does."""
    from sklearn.metrics import roc_auc_score

    first, second = int((wanted == 0).sum()), int((wanted == 1).sum())
    if not first or not second:
        return found
    area = float(roc_auc_score(wanted, chances))
    deviation = math.sqrt((first + second + 1) / (12 * first * second))  # of Mann and Whitney's statistic, for luck
    if area - SIGMAS * deviation <= 0.5:
        return found
    apart = f"though its probabilities tell the classes apart (AUROC {area:.2f})"
    remark = f"its answers are no better than a guess, {apart}: {found.remark.partition(': ')[2]}"
    low, high = area - SIGMAS * deviation, min(1.0, area + SIGMAS * deviation)
    return Learnt("auroc", area, low, high, 0.5, found.rows, True, remark)


def judge_numbers(predicted: Values, wanted: Values, centre: float, rows: str) -> Learnt:
    """Judge numbers (n,) by how much of the squared error of always answering `centre` they take away."""
    left, guess = (wanted - predicted) ** 2, (wanted - centre) ** 2
    draw = np.random.default_rng(0)

    def gone(left: Values, guess: Values) -> float:
        return float(1 - left.sum() / guess.sum()) if guess.sum() > 0 else 0.0

    def drawn() -> float:
        some = draw.integers(0, len(left), len(left))
        return gone(left[some], guess[some])

    value = gone(left, guess)
    low, high = interval(drawn)
    bounds = f"{value:.1%} ({low:.1%} to {high:.1%})"
    said = f"it explains {bounds} of the variance of {len(left):,} {rows}, where the mean alone explains 0 %"
    return made("explained variance", value, low, high, 0.0, len(left), low > 0, said)


def judge_words(perplexity: float, bounds: Sequence[float], frequency: float, words: int) -> Learnt:
    """Judge a perplexity with its interval against that of guessing words by their frequency."""
    low, high = bounds
    said = (
        f"a perplexity of {perplexity:,.0f} ({low:,.0f} to {high:,.0f}) on {words:,} masked words of the validation "
        f"text, where guessing by frequency has {frequency:,.0f}"
    )
    nothing = not perplexity < frequency
    return made("perplexity", perplexity, low, high, frequency, words, high < frequency, said, nothing)


def judge_sentences(share: float, bounds: Sequence[float], pairs: int) -> Learnt:
    """Judge how often the next sentence was told from another, which luck does half of the time."""
    low, high = bounds
    said = f"{share:.1%} ({low:.1%} to {high:.1%}) of {pairs:,} next sentences are told, where luck has 50 %"
    return made("next_sentence_accuracy", share, low, high, 0.5, pairs, low > 0.5, said)


def made(
    measure: str, value: float, low: float, high: float, guess: float, rows: int, learnt: bool, said: str,
    nothing: bool | None = None,
) -> Learnt:  # fmt: skip
    """A judgement with its sentence: nothing was learnt, or it cannot be told from nothing, or there is none to say."""
    learnt = learnt and math.isfinite(value)
    nothing = not value > guess if nothing is None else nothing
    remark = "" if learnt else f"{NOTHING if nothing else UNCERTAIN}: {said}"
    return Learnt(measure, value, low, high, guess, rows, learnt, remark)


def interval(draw: Callable[[], float]) -> tuple[float, float]:
    """The 95 % interval of REPEATS draws."""
    low, high = np.quantile([draw() for _ in range(REPEATS)], [0.025, 0.975])
    return float(low), float(high)


# ---- What a record says.


def remark(record: dict[str, Any]) -> str | None:
    """The sentence about a run that learnt nothing, or too little to be seen in its answers; None if it did."""
    told = record.get("learnt")
    if isinstance(told, dict):
        return str(told.get("remark") or "") or None
    if not record.get("beats_constant_guess", True):  # of an older run, or a damaged record
        return f"{NOTHING}: the training loss stayed that of a guess"
    if confusion := record["metrics"].get("confusion"):
        return judge_confusion(confusion).remark or None
    return None


def never_answered(confusion: Sequence[Sequence[int]], classes: Sequence[str]) -> list[str]:
    """The classes that occur and that no example was taken for."""
    counts = np.asarray(confusion)
    return [classes[n] for n in range(len(classes)) if counts[n].sum() and not counts[:, n].sum()]
