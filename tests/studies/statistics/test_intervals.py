"""The statistics of comparisons: against scipy where one source of variance is left, by simulation where two are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from weft.studies.statistics.intervals import Estimate, corrected, difference, holm, mcnemar, mean_of, widened
from weft.studies.statistics.macro_f1 import f1_scores
from weft.studies.statistics.rows import Rows, balance


def study(rng: np.random.Generator, seeds: int, examples: int, gap: float = 0.0, seed_spread: float = 0.1):
    """Two candidates (seeds, examples), right and wrong: logits of example, candidate × example, seed and rest.

    A gap of 0.5 in the logit is about five points of accuracy (checked below).
    """
    difficulty = rng.normal(2.0, 2.0, examples)
    candidates = []
    for shift in (gap, 0.0):
        logit = difficulty + rng.normal(0, 0.8, examples) + shift
        logit = logit + rng.normal(0, seed_spread, (seeds, 1)) + rng.normal(0, 0.5, (seeds, examples))
        candidates.append((rng.random((seeds, examples)) < 1 / (1 + np.exp(-logit))).astype(float))
    return candidates[0], candidates[1]


def share_of_verdicts(gap: float, seeds: int, seed_spread: float, examples: int = 1000, studies: int = 200) -> float:
    rng = np.random.default_rng(0)
    drawn = (study(rng, seeds, examples, gap, seed_spread) for _ in range(studies))
    return float(np.mean([difference(*candidates).p < 0.05 for candidates in drawn]))


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("seed_spread", [0.0, 0.1, 0.3])
def test_equal_candidates_get_a_false_verdict_in_at_most_five_percent_of_200_studies(seeds: int, seed_spread: float):
    assert share_of_verdicts(0.0, seeds, seed_spread) <= 0.05


@pytest.mark.parametrize("seed_spread", [0.0, 0.1])
def test_five_points_are_found_in_at_least_80_percent_of_200_studies(seed_spread: float):
    """1,000 examples and five seeds, whose accuracies spread by up to about one point."""
    first, second = study(np.random.default_rng(1), 400, 4000, gap=0.5, seed_spread=seed_spread)
    assert 0.04 < first.mean() - second.mean() < 0.06  # the stated size
    assert share_of_verdicts(0.5, 5, seed_spread) >= 0.80


def test_pooling_seeds_and_examples_as_if_independent_would_fail_the_same_simulation():
    """The simulation is able to fail: a z-test over all answers is wrong in far more than 5 %."""
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(200):
        first, second = study(rng, 5, 1000, seed_spread=0.3)
        error = math.sqrt(first.var() / first.size + second.var() / second.size)
        wrong += abs(first.mean() - second.mean()) / error > 1.96
    assert wrong / 200 > 0.15


def test_intervals_of_a_mean_cover_it():
    """Nominal 95 %: at least 92 % of 300 intervals (three standard errors of the simulation below 95)."""
    rng = np.random.default_rng(2)
    truth = np.mean([study(rng, 40, 4000, seed_spread=0.1)[1].mean() for _ in range(20)])
    estimates = [mean_of(study(rng, 5, 500, seed_spread=0.1)[1]) for _ in range(300)]
    assert np.mean([estimate.low <= truth <= estimate.high for estimate in estimates]) >= 0.92


def test_one_network_each_is_the_paired_t_test():
    rng = np.random.default_rng(0)
    first, second = rng.random((1, 60)), rng.random((1, 60))
    oracle = stats.ttest_rel(first[0], second[0])
    found = difference(first, second)
    assert found.p == pytest.approx(oracle.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(oracle.confidence_interval()))


def test_seeds_that_are_all_the_variance_give_welchs_t_test():
    rng = np.random.default_rng(0)
    first, second = rng.normal(0, 1, (4, 1)), rng.normal(1, 3, (6, 1))
    oracle = stats.ttest_ind(first[:, 0], second[:, 0], equal_var=False)
    found = difference(first.repeat(50, axis=1), second.repeat(50, axis=1))
    assert found.p == pytest.approx(oracle.pvalue)
    assert found.freedom == pytest.approx(oracle.df)


def test_candidates_that_never_differ_have_no_difference():
    same = np.ones((3, 20))
    found = difference(same, same)
    assert (found.mean, found.p) == (0.0, 1.0)
    assert -0.15 < found.low < 0 < found.high < 0.15  # twenty examples do not prove that none would tell them apart


@pytest.mark.parametrize("seeds", [1, 3])
def test_thirty_of_thirty_right_is_no_proof_of_a_hundred_percent(seeds: int):
    """Wilson's interval goes down to 88.6 %."""
    found = mean_of(np.ones((seeds, 30)))
    assert found.mean == found.high == 1.0
    assert 0.84 < found.low < 0.90


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("binary", [True, False])
def test_a_few_test_rows_show_nothing(rows: int, binary: bool):
    """A sign test of two rows has p = 0.5, one of five 0.06."""
    first = np.ones((3, rows)) if binary else np.full((3, rows), 0.9)
    found = difference(first, np.zeros((3, rows)))
    assert found.p >= 2 ** (1 - rows) if rows > 1 else found.p > 0.01
    assert (found.low <= 0) == (found.p >= 0.05)


def test_tables_of_seeds_alone_are_judged_by_their_seeds():
    first, second = np.array([[1.0], [1.1], [0.9], [1.05], [0.95]]), np.array([[2.0], [2.1], [1.9], [2.05], [1.95]])
    assert difference(first, second).p < 0.01


def test_an_interval_is_never_narrower_than_that_of_its_seeds():
    """Satterthwaite's covers 88 % where two seeds are nine tenths of the variance."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(1000):
        values = rng.normal(0, 3, (2, 1)) + rng.normal(0, 10**0.5, 100) + np.zeros((2, 100))
        found = mean_of(values)
        held += found.low <= 0 <= found.high
    assert held / 1000 >= 0.93


def test_repeated_cross_validation_gets_the_factor_of_nadeau_and_bengio():
    scores = np.random.default_rng(0).normal(0, 1, (3, 100))
    plain, folded = mean_of(scores), mean_of(scores, Rows(folds=5))
    assert folded.error**2 == pytest.approx(plain.error**2 * (1 + 5 / 4))
    other = np.random.default_rng(1).normal(0, 1, (3, 100))
    assert difference(scores, other, Rows(folds=5)).error ** 2 == pytest.approx(
        1.5 * difference(scores, other).error ** 2
    )


def test_candidates_on_other_examples_are_refused():
    with pytest.raises(ValueError, match="20 and on 30"):
        difference(np.ones((3, 20)), np.ones((3, 30)))


def drawn(mean: float, error: float, freedom: float) -> Estimate:
    """A difference with its plain interval and p-value."""
    p = 2 * stats.t.sf(abs(mean) / error, freedom)
    return widened(Estimate(mean, 0.0, 0.0, float(p), error, freedom), 0.95)


def test_corrected_intervals_leave_zero_out_exactly_where_a_difference_is_claimed():
    chance = np.random.default_rng(0)
    claims = 0
    for _ in range(300):
        plain = [drawn(*chance.normal(0, 2.5, 1), *chance.uniform(0.5, 1.5, 1), *chance.uniform(2, 30, 1))
                 for _ in range(chance.integers(1, 7))]  # fmt: skip
        for before, (after, p) in zip(plain, corrected(plain), strict=True):
            assert (after.low > 0 or after.high < 0) == (p < 0.05)
            bonferroni = widened(before, 1 - 0.05 / len(plain))
            assert bonferroni.low - 1e-9 <= after.low <= before.low + 1e-9
            claims += p < 0.05
    assert claims > 100


def test_one_difference_needs_no_correction():
    [(only, p)] = corrected([drawn(1.0, 0.5, 7.0)])
    assert (only.low, only.high) == pytest.approx(stats.t.interval(0.95, 7.0, 1.0, 0.5))
    assert p == pytest.approx(only.p)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_mcnemar_counts_only_the_examples_on_which_two_networks_differ():
    first = np.array([True] * 10 + [False] * 2 + [True] * 50)
    second = np.array([False] * 10 + [True] * 2 + [True] * 50)
    assert mcnemar(first, second) == pytest.approx(stats.binomtest(10, 12).pvalue)
    assert mcnemar(first, first) == 1.0


def false_claims(known: bool) -> float:
    """How often one repetition of five folds tells two equal candidates apart whose networks differ by training."""
    rng, cut = np.random.default_rng(0), np.arange(400) % 5
    rows = Rows(folds=5, cut=cut if known else None)

    def repetition() -> np.ndarray:
        return (rng.random((1, 400)) < rng.normal(0.8, 0.1, 5)[cut]).astype(float)

    return float(np.mean([difference(repetition(), repetition(), rows).p < 0.05 for _ in range(300)]))


def test_a_single_repetition_counts_how_far_its_folds_are_apart():
    assert false_claims(known=True) <= 0.05 < 0.2 < false_claims(known=False)


def test_groups_of_one_row_change_nothing_and_copies_of_rows_add_nothing():
    rng = np.random.default_rng(0)
    first, second = (rng.random((3, 60)) < 0.8).astype(float), (rng.random((3, 60)) < 0.7).astype(float)
    single = Rows(groups=np.arange(60))
    assert difference(first, second, single) == difference(first, second)
    assert mean_of(first, single) == mean_of(first)
    copies = Rows(groups=np.arange(60).repeat(5))
    found = mean_of(first.repeat(5, 1), copies)
    assert found.error == pytest.approx(mean_of(first).error) and found.parts[0].count == 60
    assert (found.low, found.high) == (pytest.approx(mean_of(first).low), pytest.approx(mean_of(first).high))


def test_balanced_accuracy_of_equal_classes_is_the_accuracy():
    rng = np.random.default_rng(0)
    scores, classes = (rng.random((1, 200)) < 0.8).astype(float), np.arange(200) % 2
    found, plain = mean_of(scores * balance(classes), Rows(classes=classes)), mean_of(scores)
    assert found.mean == pytest.approx(plain.mean)
    assert (found.low, found.high) == (pytest.approx(plain.low, abs=2e-3), pytest.approx(plain.high, abs=2e-3))
    rare = (np.arange(200) < 20).astype(int)
    unequal = mean_of(scores * balance(rare), Rows(classes=rare))
    assert unequal.mean == pytest.approx((scores[:, :20].mean() + scores[:, 20:].mean()) / 2)
    assert unequal.high - unequal.low > 1.4 * (plain.high - plain.low)


def test_scores_of_macro_f1_have_its_mean_and_its_spread():
    """The oracles: scikit-learn's F1, classes that only occur or are only answered among them, and a bootstrap."""
    from sklearn.metrics import f1_score

    rng = np.random.default_rng(0)
    for _ in range(20):
        target, said = rng.integers(0, 4, 30), rng.integers(1, 6, 30)
        wanted = f1_score(target, said, average="macro", zero_division=0)
        assert f1_scores(target, said).mean() == pytest.approx(wanted)
    target = (rng.random(600) < 0.2).astype(int)
    said = np.where(rng.random(600) < 0.85, target, 1 - target)
    drawn = [f1_scores(target[rows], said[rows]).mean() for rows in rng.integers(0, 600, (400, 600))]
    assert f1_scores(target, said).std() / math.sqrt(600) == pytest.approx(np.std(drawn), rel=0.1)


def test_macro_f1_of_answers_that_are_all_right_is_less_certain_where_a_class_is_rare():
    equal, rare = np.arange(100) % 2, (np.arange(100) < 5).astype(int)
    found = [mean_of(f1_scores(target, target)[None], Rows(f1_classes=target)) for target in (equal, rare)]
    assert [one.mean for one in found] == [1, 1] and all(0.5 < one.low < 1 == one.high for one in found)
    assert found[0].low == pytest.approx(mean_of(np.ones((1, 100))).low, abs=0.01)
    assert found[1].low < found[0].low - 0.03


def test_copies_of_rows_in_groups_make_macro_f1_no_surer():
    rng = np.random.default_rng(0)
    target = rng.integers(0, 3, 80)
    said = [np.where(rng.random(80) < 0.7, target, rng.integers(0, 3, 80)) for _ in range(4)]
    first, second = (np.stack([f1_scores(target, one) for one in pair]) for pair in (said[:2], said[2:]))
    plain = difference(first, second, Rows(f1_classes=target))
    copies = Rows(f1_classes=target.repeat(6), groups=np.arange(80).repeat(6))
    found = difference(first.repeat(6, 1), second.repeat(6, 1), copies)
    assert found.mean == pytest.approx(plain.mean) and found.error == pytest.approx(plain.error, rel=0.1)
    assert found.parts[0].count == 80


def of_seeds(accuracies: list[float], rows: int = 2000) -> np.ndarray:
    return (np.arange(rows) < rows * np.array(accuracies)[:, None]).astype(float)


def test_few_seeds_near_the_border_leave_room_for_worse_ones():
    """Five seeds at 92 to 98 % do not show how bad a sixth may be; at 50 % it may be as good as bad."""
    near, spread = of_seeds([0.92, 0.94, 0.95, 0.96, 0.98]), of_seeds([0.47, 0.49, 0.5, 0.51, 0.53])
    found, middle = mean_of(near), mean_of(spread)
    assert found.mean - found.low > 1.15 * (found.high - found.mean)
    assert middle.mean - middle.low == pytest.approx(middle.high - middle.mean, rel=0.01)
    ahead = difference(of_seeds([1.0] * 5), near)
    assert ahead.high - ahead.mean > 1.15 * (ahead.mean - ahead.low)


def test_a_difference_is_claimed_exactly_where_its_interval_leaves_zero_out_though_seeds_are_skewed():
    first, claims = of_seeds([0.92, 0.94, 0.95, 0.96, 0.98]), []
    for accuracy in np.linspace(0.85, 0.99, 29):
        for found in (difference(first, of_seeds([accuracy])), difference(of_seeds([accuracy]), first)):
            assert (found.low > 0 or found.high < 0) == (found.p < 0.05)
            claims.append(found.p < 0.05)
    assert 10 < sum(claims) < 50


def test_errors_of_a_few_rows_count_as_few():
    """Where errors grow with skewed targets a few rows make most of them, answered well or not."""
    rng = np.random.default_rng(0)
    targets = np.exp(1.2 * rng.normal(size=200))
    plain, growing = 1 - 0.3 * rng.normal(size=(5, 200)) ** 2, 1 - 0.05 * targets**2 * rng.normal(size=(5, 200)) ** 2
    lucky = growing.copy()
    lucky[:, targets.argmax()] = 0.5 * growing[:, targets.argmax()] + 0.5
    assert mean_of(plain, Rows(targets)).parts[0].freedom > 100
    assert mean_of(growing, Rows(targets)).parts[0].freedom < 40
    assert mean_of(lucky, Rows(targets)).parts[0].freedom < 40
    assert difference(growing, lucky, Rows(targets)).parts[0].freedom < 40
