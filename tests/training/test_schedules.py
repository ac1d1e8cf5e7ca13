"""Rates as functions of the step (F5)."""

from __future__ import annotations

import pytest

from weft.training.optim.optimisers import rate

NAMES = ("cosine", "linear", "onecycle", "constant")


@pytest.mark.parametrize("name", NAMES)
def test_rates_stay_between_zero_and_the_peak(name: str) -> None:
    rates = [rate(name, step, 100, 10) for step in range(100)]
    assert all(0 < value <= 1 for value in rates)
    assert max(rates) > 0.99


@pytest.mark.parametrize("name", ("cosine", "linear", "constant"))
def test_warm_up_rises_in_equal_steps(name: str) -> None:
    rates = [rate(name, step, 100, 9) for step in range(10)]
    assert rates[:9] == pytest.approx([(step + 1) / 10 for step in range(9)])


@pytest.mark.parametrize("name", ("cosine", "linear"))
def test_decaying_rates_fall_to_almost_nothing(name: str) -> None:
    rates = [rate(name, step, 100, 0) for step in range(100)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == 1
    assert 0 < rates[-1] < 0.02


def test_cosine_is_half_way_at_half_time() -> None:
    assert rate("cosine", 50, 100, 0) == pytest.approx(0.5, abs=1e-3)


def test_onecycle_rises_for_three_tenths_and_then_falls() -> None:
    rates = [rate("onecycle", step, 1000, 0) for step in range(1000)]
    assert rates[0] == pytest.approx(1 / 25)
    assert rates.index(max(rates)) == 300
