"""Has a network learnt anything, or too much by heart? Decided here alone, for every kind of run.

Whether it learnt is seen in its answers to the validation split.

Classes: the Matthews correlation of answers and targets, which is 0 for whatever answer does not depend on the input,
however unequal the classes are. Numbers: the share of the squared error of the training mean that is gone. Words: the
perplexity beside that of guessing words by their frequency. Each with a 95 % interval over the examples, and learnt is
what the whole interval says. Two classes may also be told apart by their probabilities, though one is always answered.
What is read from records needs no torch.

Over-fitting is told here too: a network over-fits when it goes on getting better on what it learns from and worse on
what it does not, by more than chance does on so few validation rows. The best step is kept all the same; but the gap
between the two losses, drawn by epoch, tells that fewer steps, more rows or more augmentation would serve as well or
better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weft.disk import write_bytes

if TYPE_CHECKING:
    from torch import Tensor

    from weft.training.metrics import Task

REPEATS = 400  # draws of a bootstrap: the tenth from either end bounds 95 %
SIGMAS = 1.96
NOTHING = "it has not learnt anything"
UNCERTAIN = "it has not been shown to have learnt anything"
GUESSING = "its answers are no better than a guess"
CURVES = "curves.svg"
FEWEST = 3  # evaluations that make a curve
RISE = 1.05  # of the validation loss over its least, which is more than its noise from step to step
APART = 2.0  # times the training loss, at which the gap is named though the validation loss does not rise
AGAINST_OVERFITTING = "more rows, more augmentation or more --weight-decay would help"
SLIGHT = 0.01  # nats, or share of the variance: a smaller difference of losses changes no answer

Record = dict[str, Any]
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
    figures: str = ""  # what was measured, in words; not in the record, whose remark has them

    def as_dict(self) -> dict[str, Any]:
        """For the record; numbers that are none are left out."""
        kept = {k: v for k, v in asdict(self).items() if k != "figures"}
        return {k: v for k, v in kept.items() if not isinstance(v, float) or math.isfinite(v)}


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
    """The same judgement, unless the probabilities put one class before the other more often than luck does.

    Answers that are better than a guess, if on too few rows to be sure of it alone, need no remark then.
    """
    from sklearn.metrics import roc_auc_score

    first, second = int((wanted == 0).sum()), int((wanted == 1).sum())
    if not first or not second:
        return found
    area = float(roc_auc_score(wanted, chances))
    deviation = math.sqrt((first + second + 1) / (12 * first * second))  # of Mann and Whitney's statistic, for luck
    if area - SIGMAS * deviation <= 0.5:
        return found
    apart = f"though its probabilities tell the classes apart (AUROC {area:.2f})"
    remark = "" if found.value > 0 else f"{GUESSING}, {apart}: {found.figures}"
    low, high = area - SIGMAS * deviation, min(1.0, area + SIGMAS * deviation)
    return Learnt("auroc", area, low, high, 0.5, found.rows, True, remark, found.figures)


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
    return Learnt(measure, value, low, high, guess, rows, learnt, remark, said)


def interval(draw: Callable[[], float]) -> tuple[float, float]:
    """The 95 % interval of REPEATS draws."""
    low, high = np.quantile([draw() for _ in range(REPEATS)], [0.025, 0.975])
    return float(low), float(high)


# ---- What a record says.


def remark(record: Record, classes: Sequence[str] = ()) -> str | None:
    """The sentence about a run that learnt nothing, or too little to be seen in its answers; None if it did.

    A record that holds no judgement is judged by its answers to the test split; `classes` are their names.
    """
    told = record.get("learnt")
    if isinstance(told, dict):
        return str(told.get("remark") or "") or None
    if not record.get("beats_constant_guess", True):  # of an older run, or a damaged record
        return f"{NOTHING}: the training loss stayed that of a guess"
    if confusion := record["metrics"].get("confusion"):
        return judge_confusion(confusion, classes).remark or None
    return None


def never_answered(confusion: Sequence[Sequence[int]], classes: Sequence[str]) -> list[str]:
    """The classes that occur and that no example was taken for."""
    counts = np.asarray(confusion)
    return [classes[n] for n in range(len(classes)) if counts[n].sum() and not counts[:, n].sum()]


# ---- The curves of a finished run: training and validation loss by epoch.


def points(record: Record) -> list[dict[str, float]]:
    """Evaluations with both losses, in order."""
    evaluations = (event for event in record.get("curve", []) if event["kind"] == "evaluation")
    return [event for event in evaluations if all(map(is_number, map(event.get, ("train_loss", "validation_loss"))))]


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def overfitting(record: Record) -> str | None:
    """A sentence on the gap between training and validation loss where there is over-fitting, else None."""
    found = points(record)
    if len(found) < FEWEST:
        return None
    least, last = min(found, key=lambda event: event["validation_loss"]), found[-1]
    train, held = last["train_loss"], last["validation_loss"]
    noise, lowest = noise_of(record), least["validation_loss"]
    if held > max(RISE, 1 + noise) * lowest and held > lowest + SLIGHT and train < least["train_loss"]:
        return (
            f"over-fitting: after epoch {least['epoch']:.3g} the validation loss rose from "
            f"{least['validation_loss']:.3g} to {held:.3g} while the training loss fell from {least['train_loss']:.3g} "
            f"to {train:.3g}; the best step, {record.get('best_step')}, is kept; fewer --epochs, {AGAINST_OVERFITTING}"
        )
    if train < min(1 / APART, 1 - noise) * held and train < held - SLIGHT:
        return f"over-fitting: training loss {train:.3g}, validation loss {held:.3g} at the end; {AGAINST_OVERFITTING}"
    return None


def noise_of(record: Record) -> float:
    """What chance does to a validation loss, as a share of it: losses of single rows deviate by about their mean."""
    rows = (record.get("learnt") or {}).get("rows")
    return SIGMAS / math.sqrt(rows) if rows else 0.0


def draw_curves(folder: Path, record: Record) -> None:
    """Write the picture of a run that has been evaluated often enough."""
    from weft.report.curves import curves
    from weft.report.standalone import standalone

    found = points(record)
    if len(found) < FEWEST:
        return
    epochs = [event["epoch"] for event in found]
    series = {
        "training": (epochs, [event["train_loss"] for event in found]),
        "validation": (epochs, [event["validation_loss"] for event in found]),
    }
    said = overfitting(record) or f"training and validation loss over {epochs[-1]:.3g} epochs"
    write_bytes(folder / CURVES, standalone(curves(series, ("epoch", "loss"), said)).encode())
