"""How often the intervals of a comparison hold what is true, in simulated studies where that is known.

    OMP_NUM_THREADS=1 python benchmarks/coverage.py                  # seeds × test rows; about 10 minutes
    OMP_NUM_THREADS=1 python benchmarks/coverage.py --only macro-F1  # the tables with this in their title
    OMP_NUM_THREADS=1 python benchmarks/coverage.py --folds          # repeated cross-validation; about 3 minutes

Answers are right where a normal value is above a threshold; it is made of an example's part, a seed's part and a rest,
and accuracies are exact. A regression's errors are normal, or grow with the target. A few of these studies run in
`tests/studies/statistics/test_coverage.py`.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from weft.studies.statistics.intervals import Estimate, difference, mean_of
from weft.studies.statistics.macro_f1 import f1_scores
from weft.studies.statistics.rows import Rows, balance, linear
from weft.studies.statistics.target_spread import influence

Array = NDArray[np.float64]
Found = tuple[bool, float, float]  # whether the interval holds the truth, its width, and that of a plain t interval

# shares of the variance of an answer: example, seed, rest. `usual` seeds spread by 1.8 points at 90 %, `apart` by 3.9
ANSWERS = {"agree": (0.95, 0.0, 0.05), "free": (0.3, 0.0, 0.7), "usual": (0.6, 0.01, 0.39), "apart": (0.5, 0.05, 0.45)}
SEEDS, ROWS = (2, 3, 5), (30, 100, 1000)
ACCURACIES = (0.5, 0.8, 0.9, 0.967, 0.99, 1.0)
PAIRS = ((0.5, 0.5), (0.8, 0.7), (0.9, 0.9), (0.967, 0.9), (0.99, 0.967), (1.0, 0.95))
LAWS = {"normal": (1.0, 1.0), "exponential": (1.0, 2.0), "log-normal": (math.e * (math.e - 1), math.exp(2))}
BALANCED = ((0.95, 0.6), (0.98, 0.9), (0.99, 0.97))
SHARES = {2: (0.9, 0.1), 4: (0.4, 0.3, 0.2, 0.1)}  # of the rows, by the number of classes
F1 = (*BALANCED, (0.9, 0.8, 0.8, 0.6), (0.99, 0.99, 0.97, 0.95))  # accuracies of each class
EXPLAINED = (0.3, 0.97)
EXPLAINED_PAIRS = ((0.8, 0.5), (0.5, 0.45), (0.3, 0.3))


def answers(rng: np.random.Generator, accuracies: Iterable[float], seeds: int, rows: int, kind: str) -> list[Array]:
    """A matrix (seeds, rows) of right and wrong for each accuracy; candidates find the same rows hard."""
    row, seed, rest = (math.sqrt(share) for share in ANSWERS[kind])
    common, found = rng.normal(size=rows), []
    for accuracy in accuracies:
        value = row * (math.sqrt(0.6) * common + math.sqrt(0.4) * rng.normal(size=rows))
        value = value + seed * rng.normal(size=(seeds, 1)) + rest * rng.normal(size=(seeds, rows))
        found.append((value + (ndtri(accuracy) if accuracy < 1 else 99.0) > 0).astype(float))
    return found


def regressions(
    rng: np.random.Generator, explained: Iterable[float], seeds: int, rows: int, law: str, growing: bool = False
) -> tuple[Array, list[Array]]:
    """Targets (rows,) and a matrix (seeds, rows) of scores for each R²; errors grow with the target if asked to."""
    normal = rng.normal(size=rows)
    targets = {"normal": normal, "exponential": rng.exponential(size=rows), "log-normal": np.exp(normal)}[law]
    variance, square = LAWS[law]
    found = []
    for share in explained:
        error = math.sqrt(0.6) * rng.normal(size=rows) + math.sqrt(0.4) * rng.normal(size=(seeds, rows))
        error = error * np.exp(0.02 * rng.normal(size=(seeds, 1)) - 0.0004)
        size = np.abs(targets) / math.sqrt(square) if growing else 1.0
        found.append(1 - (1 - share) * variance * (error * size) ** 2 / targets.var())
    return targets, found


def balanced_answers(
    rng: np.random.Generator, accuracies: Iterable[tuple[float, float]], seeds: int, rows: int, kind: str, rare: float
) -> tuple[Rows, list[Array]]:
    """Scores of balanced accuracy for candidates with two accuracies, that of a common and of a rare class."""
    accuracies = list(accuracies)
    classes = (rng.random(rows) < rare).astype(np.int64)
    sides = [answers(rng, side, seeds, rows, kind) for side in zip(*accuracies, strict=True)]
    weight = balance(classes)
    both = zip(*sides, strict=True)
    return Rows(classes=classes), [np.where(classes == 1, second, first) * weight for first, second in both]


def f1_answers(
    rng: np.random.Generator, accuracies: Iterable[tuple[float, ...]], seeds: int, rows: int, kind: str
) -> tuple[Rows, list[Array]]:
    """Scores of macro-F1 for candidates with an accuracy for each class; a wrong answer is any other class."""
    accuracies = list(accuracies)
    shares = SHARES[len(accuracies[0])]
    classes = rng.choice(len(shares), rows, p=shares)
    found = []
    for sides in zip(*(answers(rng, side, seeds, rows, kind) for side in zip(*accuracies, strict=True)), strict=True):
        right = np.stack(sides)[classes, :, np.arange(rows)].T == 1
        other = (classes + rng.integers(1, len(shares), (seeds, rows))) % len(shares)
        found.append(np.stack([f1_scores(classes, said) for said in np.where(right, classes, other)]))
    return Rows(f1_classes=classes), found


@lru_cache
def true_f1(accuracies: tuple[float, ...], kind: str, seeds: int = 20_000) -> float:
    """Mean over many seeds of macro-F1 on all rows there are."""
    shares, spread = np.array(SHARES[len(accuracies)])[:, None], math.sqrt(ANSWERS[kind][1])
    drawn = spread * np.random.default_rng(7).normal(size=(len(accuracies), seeds))
    known = shares * ndtr((ndtri(np.array(accuracies))[:, None] + drawn) / math.sqrt(1 - spread**2))
    missed = shares - known
    alarms = (missed.sum(0) - missed) / (len(accuracies) - 1)
    return float((2 * known / (shares + known + alarms)).mean())


def grouped_answers(
    rng: np.random.Generator, accuracies: Iterable[float], seeds: int, groups: int, size: int, alike: float
) -> tuple[Rows, list[Array]]:
    """Right and wrong on rows of groups of unequal sizes, a share `alike` of whose difficulty is the group's."""
    owner = np.repeat(np.arange(groups), rng.integers(1, 2 * size, groups))
    hard, found = rng.normal(size=len(owner)), []
    for accuracy in accuracies:
        value = math.sqrt(alike) * (0.8 * rng.normal(size=groups) + 0.6 * rng.normal(size=groups))[owner]
        value = value + math.sqrt(1 - alike) * (0.6 * hard + 0.8 * rng.normal(size=(seeds, len(owner))))
        found.append((value + ndtri(accuracy) > 0).astype(float))
    return Rows(groups=owner), found


def judged(estimate: Estimate, truth: float, per_row: Array) -> Found:
    plain = 2 * float(stdtrit(len(per_row) - 1, 0.975)) * float(per_row.std(ddof=1)) / math.sqrt(len(per_row))
    return estimate.low - 1e-9 <= truth <= estimate.high + 1e-9, estimate.high - estimate.low, plain


def accuracy_study(rng: np.random.Generator, accuracy: float, seeds: int, rows: int, kind: str) -> Found:
    (scores,) = answers(rng, [accuracy], seeds, rows, kind)
    return judged(mean_of(scores), accuracy, scores.mean(0))


def accuracy_pair(rng: np.random.Generator, pair: tuple[float, float], seeds: int, rows: int, kind: str) -> Found:
    first, second = answers(rng, pair, seeds, rows, kind)
    return judged(difference(first, second), pair[0] - pair[1], first.mean(0) - second.mean(0))


def explained_study(rng: np.random.Generator, share: float, seeds: int, rows: int, law: str) -> Found:
    targets, (scores,) = regressions(rng, [share], seeds, rows, law.split(",")[0], "," in law)
    return judged(mean_of(scores, Rows(targets)), share, influence(scores, targets).mean(0))


def explained_pair(rng: np.random.Generator, pair: tuple[float, float], seeds: int, rows: int, law: str) -> Found:
    targets, (first, second) = regressions(rng, pair, seeds, rows, law.split(",")[0], "," in law)
    per_row = influence(first, targets).mean(0) - influence(second, targets).mean(0)
    return judged(difference(first, second, Rows(targets)), pair[0] - pair[1], per_row)


def balanced_study(
    rng: np.random.Generator, pair: tuple[float, float], seeds: int, rows: int, kind: str, rare: float = 0.1
) -> Found:
    known, (scores,) = balanced_answers(rng, [pair], seeds, rows, kind, rare)
    return judged(mean_of(scores, known), sum(pair) / 2, linear(scores, known).mean(0))


def balanced_pair(
    rng: np.random.Generator, pair: tuple[float, float], seeds: int, rows: int, kind: str, rare: float = 0.1
) -> Found:
    """Against 95 % of the common class and 80 % of the rare one."""
    known, (first, second) = balanced_answers(rng, [pair, (0.95, 0.8)], seeds, rows, kind, rare)
    per_row = linear(first, known).mean(0) - linear(second, known).mean(0)
    return judged(difference(first, second, known), sum(pair) / 2 - 0.875, per_row)


def f1_study(rng: np.random.Generator, accuracies: tuple[float, ...], seeds: int, rows: int, kind: str) -> Found:
    known, (scores,) = f1_answers(rng, [accuracies], seeds, rows, kind)
    return judged(mean_of(scores, known), true_f1(accuracies, kind), scores.mean(0))


def f1_pair(rng: np.random.Generator, accuracies: tuple[float, ...], seeds: int, rows: int, kind: str) -> Found:
    """Against 95 % of the commonest class and 80 % of the others."""
    other = (0.95, *[0.8] * (len(accuracies) - 1))
    known, (first, second) = f1_answers(rng, [accuracies, other], seeds, rows, kind)
    truth = true_f1(accuracies, kind) - true_f1(other, kind)
    return judged(difference(first, second, known), truth, first.mean(0) - second.mean(0))


def grouped_study(rng: np.random.Generator, accuracy: float, seeds: int, groups: int, size: int, alike: float) -> Found:
    known, (scores,) = grouped_answers(rng, [accuracy], seeds, groups, size, alike)
    return judged(mean_of(scores, known), accuracy, scores.mean(0))


def grouped_pair(
    rng: np.random.Generator, pair: tuple[float, float], seeds: int, groups: int, size: int, alike: float
) -> Found:
    known, (first, second) = grouped_answers(rng, pair, seeds, groups, size, alike)
    return judged(difference(first, second, known), pair[0] - pair[1], first.mean(0) - second.mean(0))


def coverage(study: Callable[..., Found], *given: object, studies: int = 1000, seed: int = 0) -> tuple[float, float]:
    """Share of intervals that hold the truth, and their mean width over that of plain t intervals."""
    rng = np.random.default_rng(seed)
    held, widths, plain = np.array([study(rng, *given) for _ in range(studies)]).T
    return float(held.mean()), float(widths.mean() / plain.mean()) if plain.mean() else math.inf


def table(
    title: str, study: Callable[..., Found], values: Iterable[object], kinds: Iterable[str], studies: int
) -> None:
    """Coverage by kind and seeds, the lowest over values at each number of rows, and the width where seeds agree."""
    print(f"\n| {title} | seeds | " + " | ".join(f"{rows:,} rows" for rows in ROWS) + " | width / plain t |")
    print("|---|---|" + "---|" * (len(ROWS) + 1))
    values = list(values)
    for kind, seeds in itertools.product(kinds, SEEDS):
        cells, wide = [], []
        for rows in ROWS:
            found = [coverage(study, value, seeds, rows, kind, studies=studies) for value in values]
            least = min(range(len(values)), key=lambda index: found[index][0])
            cells.append(f"{100 * found[least][0]:.1f} ({values[least]})")
            wide.append(float(np.median([width for _, width in found])))
        print(f"| {kind} | {seeds} | " + " | ".join(cells) + f" | {min(wide):.2f}…{max(wide):.2f} |", flush=True)


# ---- Repeated cross-validation: simple learners on few rows, judged against learners trained on fresh rows.

Learner = Callable[[Array, Array, Array], Array]
FEATURES = 8


def rows_of(rng: np.random.Generator, count: int, classes: bool) -> tuple[Array, Array]:
    x = rng.normal(size=(count, FEATURES))
    if classes:
        chance = 1 / (1 + np.exp(-(1.5 * x[:, 0] + x[:, 1] - 0.8 * x[:, 2] * x[:, 3])))
        return x, (rng.random(count) < chance).astype(float)
    return x, x[:, 0] + 0.5 * x[:, 1] + 0.6 * np.sin(2 * x[:, 2]) + 0.8 * rng.normal(size=count)


def ridge(penalty: float, bent: bool = False) -> Learner:
    def fit(x: Array, y: Array, asked: Array) -> Array:
        if bent:
            x, asked = (np.concatenate([z, z[:, :-1] * z[:, 1:], np.tanh(2 * z)], 1) for z in (x, asked))
        middle, level = x.mean(0), y.mean()
        left = (x - middle).T @ (x - middle) + penalty * np.eye(x.shape[1])
        return np.asarray((asked - middle) @ np.linalg.solve(left, (x - middle).T @ (y - level)) + level)

    return fit


def neighbours(x: Array, y: Array, asked: Array) -> Array:
    near = np.argpartition((x**2).sum(1) - 2 * asked @ x.T, 5, 1)[:, :5]
    return np.asarray(y[near].mean(1))


def centroids(x: Array, y: Array, asked: Array) -> Array:
    one, zero = ((asked - x[y == side].mean(0)) ** 2 for side in (1, 0))
    return (zero.sum(1) > one.sum(1)).astype(float)


LEARNERS: dict[bool, dict[str, Learner]] = {
    True: {"ridge": ridge(1.0), "bent ridge": ridge(1.0, True), "neighbours": neighbours, "centroids": centroids},
    False: {"ridge": ridge(1.0), "bent ridge": ridge(5.0, True), "neighbours": neighbours, "stiff ridge": ridge(30.0)},
}


def scored(predicted: Array, y: Array, classes: bool) -> Array:
    return ((predicted > 0.5) == y).astype(float) if classes else 1 - (predicted - y) ** 2 / y.var()


def cross_validated(
    rng: np.random.Generator, count: int, classes: bool, folds: int, times: int
) -> tuple[Array, list[Array]]:
    """Targets, and for each learner a matrix (repetitions, rows) of scores; folds are stratified."""
    x, y = rows_of(rng, count, classes)
    predicted = np.zeros((len(LEARNERS[classes]), times, count))
    for time in range(times):
        order = rng.permutation(count)
        order = order[np.argsort(y[order], kind="stable")] if classes else order
        fold = np.empty(count, int)
        fold[order] = np.arange(count) % folds
        for part, (which, learner) in itertools.product(range(folds), enumerate(LEARNERS[classes].values())):
            held = fold == part
            predicted[which, time, held] = learner(x[~held], y[~held], x[held])
    return y, [scored(one, y, classes) for one in predicted]


def true_scores(count: int, classes: bool, repeats: int = 150) -> list[float]:
    """Mean score of learners trained on so many fresh rows, on 1,500 fresh rows."""
    rng = np.random.default_rng(99)
    found = np.zeros((repeats, len(LEARNERS[classes])))
    for repeat in range(repeats):
        (x, y), (asked, wanted) = rows_of(rng, count, classes), rows_of(rng, 1500, classes)
        found[repeat] = [scored(fit(x, y, asked), wanted, classes).mean() for fit in LEARNERS[classes].values()]
    return [float(value) for value in found.mean(0)]


def folded(count: int, classes: bool, folds: int, times: int, studies: int, corrected: bool) -> tuple[float, float]:
    """Lowest coverage over learners, of means, and over pairs of learners, of differences."""
    rng, truths = np.random.default_rng(1), true_scores(count * (folds - 1) // folds, classes)
    pairs = list(itertools.combinations(range(len(truths)), 2))
    means, apart = np.zeros((studies, len(truths))), np.zeros((studies, len(pairs)))
    used = folds if corrected else None
    for study in range(studies):
        y, scores = cross_validated(rng, count, classes, folds, times)
        rows = Rows(None if classes else y, folds=used)
        found = [mean_of(one, rows) for one in scores]
        means[study] = [one.low <= truth <= one.high for one, truth in zip(found, truths, strict=True)]
        both = [difference(scores[a], scores[b], rows) for a, b in pairs]
        apart[study] = [one.low <= truths[a] - truths[b] <= one.high for one, (a, b) in zip(both, pairs, strict=True)]
    return float(means.mean(0).min()), float(apart.mean(0).min())


def folds_table(studies: int) -> None:
    print("| task | rows | folds × repetitions | mean, uncorrected | mean | difference, uncorrected | difference |")
    print("|---|---|---|---|---|---|---|")
    for classes, count, (folds, times) in itertools.product((True, False), (60, 200, 1000), ((5, 2), (5, 3), (10, 2))):
        if count == 1000 and (folds, times) != (5, 2):
            continue
        few = max(studies // 4, 20) if count == 1000 else studies
        (m0, d0), (m1, d1) = (folded(count, classes, folds, times, few, how) for how in (False, True))
        task = "accuracy" if classes else "R²"
        cells = " | ".join(f"{100 * value:.1f}" for value in (m0, m1, d0, d1))
        print(f"| {task} | {count:,} | {folds} × {times} | {cells} |", flush=True)


def groups_table(studies: int) -> None:
    """Lowest coverage over accuracies where rows are of groups of ten on average, with three seeds."""
    print("\n| groups | alike | mean | difference |\n|---|---|---|---|")
    for groups, alike in itertools.product((20, 100), (0.0, 0.3, 0.8)):
        given = (3, groups, 10, alike)
        means = [coverage(grouped_study, value, *given, studies=studies)[0] for value in (0.5, 0.8, 0.95)]
        pairs = [coverage(grouped_pair, pair, *given, studies=studies)[0] for pair in ((0.8, 0.8), (0.95, 0.8))]
        print(f"| {groups} | {alike} | {100 * min(means):.1f} | {100 * min(pairs):.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--only", default="")
    parser.add_argument("--folds", action="store_true")
    asked = parser.parse_args()
    if asked.folds:
        folds_table(asked.studies)
        return
    laws = [*LAWS, "exponential, growing errors", "log-normal, growing errors"]
    for title, study, values, kinds in (
        ("accuracy", accuracy_study, ACCURACIES, ANSWERS),
        ("difference of accuracies", accuracy_pair, PAIRS, ANSWERS),
        ("balanced accuracy, a class of 10 %", balanced_study, BALANCED, ANSWERS),
        ("difference of balanced accuracies", balanced_pair, BALANCED, ANSWERS),
        ("macro-F1", f1_study, F1, ANSWERS),
        ("difference of macro-F1", f1_pair, F1, ANSWERS),
        ("R²", explained_study, EXPLAINED, laws),
        ("difference of R²", explained_pair, EXPLAINED_PAIRS, laws),
    ):
        if asked.only in title:
            table(title, study, values, kinds, asked.studies)
    if asked.only in "groups":
        groups_table(asked.studies)


if __name__ == "__main__":
    main()
