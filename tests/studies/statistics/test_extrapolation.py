"""What more rows would bring: curves of a known law, of which the last points are held out."""

from __future__ import annotations

import numpy as np
import pytest

from weft.studies.statistics.extrapolation import fit, last_held_out, more_rows

ROWS = np.array([100.0, 300.0, 1000.0])


def error(rows, power: float, floor: float):
    return floor + 0.2 * (np.asarray(rows) / 1000) ** -power


@pytest.mark.parametrize("power, floor", [(0.1, 0.0), (0.3, 0.05), (0.5, 0.0), (0.5, 0.15), (1.0, 0.05)])
def test_errors_at_twice_and_four_times_the_rows_lie_in_their_intervals(power: float, floor: float):
    rng, held = np.random.default_rng(0), []
    for _ in range(60):
        curve = fit(ROWS, error(ROWS, power, floor) + rng.normal(0, 0.01, 3), [0.01] * 3)
        for rows in (2000, 4000):
            _, low, high = curve.at(rows)
            held.append(low <= error(rows, power, floor) <= high)
    assert np.mean(held) >= 0.88  # 60 curves: a standard error of three points


def test_the_last_point_held_out_is_foretold():
    rng, spread = np.random.default_rng(0), [0.01] * 3
    drawn = [error(ROWS, 0.3, 0.05) + rng.normal(0, 0.01, 3) for _ in range(60)]
    assert np.mean([last_held_out(list(ROWS), list(errors), spread) for errors in drawn]) >= 0.9
    assert last_held_out([100, 300, 1000], [0.4, 0.2, 0.39], [0.005] * 3) is False  # no law foretells that
    assert last_held_out([100, 1000], [0.4, 0.2], [0.01] * 2) is None


def test_a_clear_power_law_is_recovered_and_a_flat_curve_promises_nothing():
    middle, low, high = fit(ROWS, error(ROWS, 0.5, 0.0), [0.001] * 3).at(4000)
    assert low <= 0.1 <= high and middle == pytest.approx(0.1, abs=0.01)
    middle, _, high = fit(ROWS, [0.2, 0.2, 0.2], [0.005] * 3).at(4000)
    assert middle == pytest.approx(0.2, abs=0.01) and high < 0.22


def test_a_rising_curve_is_taken_for_a_flat_one():
    middle, low, high = fit(ROWS, [0.1, 0.2, 0.4], [0.001] * 3).at(4000)
    assert 0 < low <= middle <= high < 1


def points(name: str, power: float) -> list[dict[str, object]]:
    scores = 1 - error(ROWS, power, 0.0)
    return [
        {"candidate": name, "share": share, "mean": score, "low": score - 0.02, "high": score + 0.02}
        for share, score in zip((0.1, 0.3, 1.0), scores, strict=True)
    ]


def test_each_family_is_told_what_more_rows_would_bring():
    steep, flat = more_rows([*points("vit", 0.5), *points("mlp", 0.02)], 1000)
    assert (steep["candidate"], steep["rows"], steep["held_out"]) == ("vit", 1000, True)
    assert [forecast["rows"] for forecast in steep["forecasts"]] == [2000, 4000]
    assert steep["forecasts"][0]["mean"] > steep["score"] + 0.02 > flat["forecasts"][0]["mean"]
    assert (
        steep["sentence"].startswith("vit: 80.0 now; with twice the rows 8")
        and "four times the rows" in steep["sentence"]
    )
    assert "foretell" not in steep["sentence"]


def test_a_curve_whose_points_did_not_foretell_the_last_is_told_with_doubt():
    shares, scores = (0.1, 0.3, 1.0), (0.40, 0.75, 0.76)
    near = [
        {"candidate": "vit", "share": share, "mean": score, "low": score - 0.005, "high": score + 0.005}
        for share, score in zip(shares, scores, strict=True)
    ]
    (told,) = more_rows(near, 1000)
    assert told["held_out"] is False
    assert told["sentence"].endswith("probably; but the points before did not foretell the last, so hardly these")


def test_a_perfect_score_or_a_single_point_has_no_curve():
    assert more_rows([{"candidate": "a", "share": 1.0, "mean": 0.9, "low": 0.8, "high": 1.0}], 1000) == []
    whole = [{"candidate": "a", "share": share, "mean": 1.0, "low": 0.9, "high": 1.0} for share in (0.1, 1.0)]
    assert more_rows(whole, 1000) == []
    with pytest.raises(ValueError, match="two points"):
        fit([100], [0.1], [0.01])


def test_the_largest_share_is_that_of_all_rows_that_were_given():
    """Half of the source was asked for, so its parts are 5, 15 and 50 % of it."""
    points = [
        {"candidate": "mlp", "share": share, "mean": score, "low": score - 0.02, "high": score + 0.02}
        for share, score in ((0.05, 0.6), (0.15, 0.7), (0.5, 0.8))
    ]
    (found,) = more_rows(points, 5000)
    assert found["rows"] == 5000 and [forecast["rows"] for forecast in found["forecasts"]] == [10_000, 20_000]
