"""Do intervals hold what is true? A few of the simulated studies of `benchmarks/coverage.py`."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

from weft.studies.statistics.intervals import difference, mean_of
from weft.studies.statistics.rows import Rows
from weft.studies.statistics.target_spread import l_moments, shape_of, unseen_spread

PLACE = Path(__file__).parents[3] / "benchmarks" / "coverage.py"
SPEC = importlib.util.spec_from_file_location("coverage_benchmark", PLACE)
assert SPEC is not None and SPEC.loader is not None
simulation = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(simulation)

STUDIES = 300  # a share of 95 % has a standard error of 1.3 points
ENOUGH = 0.92


@pytest.mark.parametrize("seeds, rows, accuracy, kind", [
    (2, 30, 0.967, "usual"), (3, 30, 0.967, "agree"), (5, 30, 0.99, "usual"), (3, 100, 0.99, "agree"),
    (2, 1000, 0.5, "usual"), (3, 300, 0.9, "apart"), (5, 1000, 0.967, "usual"), (3, 30, 1.0, "agree"),
])  # fmt: skip
def test_the_accuracy_lies_in_its_interval(seeds: int, rows: int, accuracy: float, kind: str):
    held, _ = simulation.coverage(simulation.accuracy_study, accuracy, seeds, rows, kind, studies=STUDIES)
    assert held >= ENOUGH


@pytest.mark.parametrize("seeds, rows, pair, kind", [
    (2, 30, (0.99, 0.967), "usual"), (3, 30, (1.0, 0.95), "agree"), (5, 100, (0.967, 0.9), "usual"),
    (2, 1000, (0.9, 0.9), "apart"), (5, 30, (0.5, 0.5), "free"),
])  # fmt: skip
def test_the_difference_of_accuracies_lies_in_its_interval(seeds: int, rows: int, pair: tuple[float, float], kind: str):
    held, _ = simulation.coverage(simulation.accuracy_pair, pair, seeds, rows, kind, studies=STUDIES)
    assert held >= ENOUGH


@pytest.mark.parametrize("seeds, rows, share, law", [
    (3, 30, 0.3, "normal"), (5, 100, 0.8, "normal"), (5, 30, 0.8, "exponential"), (3, 300, 0.3, "exponential"),
    (3, 30, 0.8, "log-normal"), (5, 100, 0.3, "log-normal"), (3, 300, 0.8, "log-normal"),
])  # fmt: skip
def test_the_explained_variance_lies_in_its_interval(seeds: int, rows: int, share: float, law: str):
    held, _ = simulation.coverage(simulation.explained_study, share, seeds, rows, law, studies=STUDIES)
    assert held >= ENOUGH


@pytest.mark.parametrize("law", ["normal", "exponential", "log-normal"])
@pytest.mark.parametrize("pair", [(0.8, 0.5), (0.3, 0.3)])
def test_the_difference_of_explained_variances_lies_in_its_interval(law: str, pair: tuple[float, float]):
    held, _ = simulation.coverage(simulation.explained_pair, pair, 3, 100, law, studies=STUDIES)
    assert held >= ENOUGH


@pytest.mark.parametrize("pair", [(0.95, 0.6), (0.98, 0.9)])
def test_balanced_accuracy_lies_in_its_interval(pair: tuple[float, float]):
    """Three seeds, 200 rows, nine of ten of one class."""
    for study in (simulation.balanced_study, simulation.balanced_pair):
        held, _ = simulation.coverage(study, pair, 3, 200, "usual", studies=200)
        assert held >= 0.93


@pytest.mark.parametrize("accuracies", [(0.99, 0.97), (0.9, 0.8, 0.8, 0.6)])
def test_macro_f1_lies_in_its_interval(accuracies: tuple[float, ...]):
    """Three seeds, 100 rows, of which the rarest class has ten."""
    for study in (simulation.f1_study, simulation.f1_pair):
        held, _ = simulation.coverage(study, accuracies, 3, 100, "agree", studies=200)
        assert held >= 0.93


def test_scores_of_rows_in_groups_lie_in_their_interval_and_would_not_if_rows_counted():
    held, _ = simulation.coverage(simulation.grouped_study, 0.8, 3, 40, 10, 0.5, studies=200)
    apart, _ = simulation.coverage(simulation.grouped_pair, (0.8, 0.8), 3, 40, 10, 0.5, studies=200)
    assert held >= ENOUGH and apart >= ENOUGH
    rng, inside = np.random.default_rng(0), 0
    for _ in range(200):
        _, (scores,) = simulation.grouped_answers(rng, [0.8], 3, 40, 10, 0.5)
        found = mean_of(scores)
        inside += found.low <= 0.8 <= found.high
    assert inside / 200 < 0.75


def test_a_variance_of_targets_taken_as_known_would_fail_the_same_simulation():
    rng, held = np.random.default_rng(0), 0
    for _ in range(STUDIES):
        _, (scores,) = simulation.regressions(rng, [0.8], 3, 100, "log-normal")
        found = mean_of(scores)
        held += found.low <= 0.8 <= found.high
    assert held / STUDIES < 0.6


def test_intervals_are_not_needlessly_wide():
    """Beside a plain t interval, where that one is right: answers on which seeds agree, and normal targets."""
    for study, value, kind, most in (
        (simulation.accuracy_study, 0.8, "agree", 1.15),
        (simulation.accuracy_pair, (0.8, 0.7), "agree", 1.15),
        (simulation.explained_study, 0.8, "normal", 1.35),
        (simulation.explained_pair, (0.5, 0.5), "normal", 1.35),
    ):
        assert simulation.coverage(study, value, 5, 100, kind, studies=100)[1] < most


def test_repeated_cross_validation_holds_what_fresh_rows_would_give():
    means, differences = simulation.folded(60, True, 5, 3, 60, True)
    assert min(means, differences) >= 0.9  # 60 studies: a standard error of three points


def test_a_difference_of_r2_is_claimed_exactly_where_its_interval_leaves_zero_out():
    rng, claims = np.random.default_rng(0), 0
    for _ in range(200):
        targets, (first, second) = simulation.regressions(rng, (0.8, 0.5), 3, 100, "log-normal")
        found = difference(first, second, Rows(targets))
        assert (found.low > 0 or found.high < 0) == (found.p < 0.05)
        claims += found.p < 0.05
    assert 20 < claims < 180


@pytest.mark.parametrize("shape", [0.5, 1.0])
def test_the_shape_of_log_normal_targets_is_found_whatever_their_place_and_scale(shape: float):
    values = -7 + 3 * np.exp(shape * np.random.default_rng(0).normal(size=100_000))
    skewness, kurtosis = l_moments(values)
    assert shape_of(kurtosis) == pytest.approx(shape, abs=0.08)
    assert skewness > 0.2


def test_the_unseen_spread_of_normal_targets_is_that_of_chi_square():
    from scipy.stats import chi2

    rng = np.random.default_rng(0)
    found = np.median([unseen_spread(rng.normal(size=1000)) for _ in range(20)])
    assert found == pytest.approx(-math.log(chi2.ppf(0.025, 999) / 999), rel=0.35)
