"""How a comparison in a given time is laid out: what fits, and what is given up first."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from weft.studies.compare.timed.layout import ENOUGH, RUNGS, SHORTER, Room, Stages, lay_out, rungs, steps_worth, work
from weft.studies.compare.timed.pace import Pace

FAST, SLOW = Pace(0.01, 0.05, 0.1), Pace(0.2, 0.5, 1.0)


def room(left: float, first_by: float | None = None, workers: int = 2, longest: float = 1e9) -> Room:
    return Room(left, left / 5 if first_by is None else first_by, workers, longest)


def test_seconds_become_steps_and_their_evaluations_take_a_small_part():
    assert FAST.steps(2.0) == 200 and SLOW.steps(0.05) == 1
    assert FAST.evaluations(2.1) == 6 and FAST.evaluations(60.0) == 10 and SLOW.evaluations(1.0) == 1
    assert FAST.interval(2.0) * FAST.evaluations(2.0) >= 200
    assert FAST.seconds(2.0) > FAST.seconds(2.0, tested=False) > 2.0


@pytest.mark.parametrize("left", [20.0, 60.0, 300.0, 900.0, 7200.0])
@pytest.mark.parametrize("paces", [[FAST] * 8, [FAST] * 4 + [SLOW] * 4])
def test_what_is_laid_out_fits_and_longer_runs_would_not(left: float, paces: list[Pace]):
    stages = lay_out(paces, room(left), 3, 6)
    assert stages is not None
    assert work(paces, stages, room(left)) / 2 <= left
    longer = replace(stages, full=stages.full * 2 ** (1 / RUNGS))
    assert work(paces, longer, room(left)) / 2 > left * 0.95
    assert stages.first <= stages.full / SHORTER * 1.001
    assert stages.seeds >= 2 or left < 60


def test_short_times_have_fewer_settings_then_fewer_seeds_then_nothing():
    paces = [FAST] * 8
    found = [lay_out(paces, room(left), 3, 6) for left in (900.0, 150.0, 40.0, 8.0, 1.0)]
    assert [stages and (stages.settings, stages.seeds) for stages in found] == [(6, 3), (3, 3), (1, 2), (1, 1), None]


@pytest.mark.parametrize(("left", "seeds", "settings"), [(3600.0, 3, 6), (1200.0, 3, 3), (600.0, 2, 3), (300.0, 2, 1)])
def test_seeds_and_settings_are_given_up_for_runs_of_enough_steps(left: float, seeds: int, settings: int):
    paces = [Pace(0.12, 0.2, 0.5)] * 8
    stages = lay_out(paces, room(left), 3, 6)
    assert stages is not None and (stages.seeds, stages.settings) == (seeds, settings)
    assert paces[0].steps(stages.full) >= ENOUGH or (seeds, settings) == (2, 1)


@pytest.mark.parametrize("settings", [1, 2, 4, 6, 9])
def test_as_many_settings_are_tried_as_were_asked_for_where_there_is_time(settings: int):
    stages = lay_out([FAST] * 8, room(3600.0), 3, settings)
    assert stages is not None and stages.settings == settings


def test_no_run_is_longer_than_many_passes_take():
    stages = lay_out([FAST], room(1e6, 1e5, 1, longest=100.0), 3, 6)
    assert stages is not None and stages.full == pytest.approx(64 * math.sqrt(2))


def test_the_first_leaderboard_is_early_even_where_full_runs_are_long():
    paces = [SLOW] * 8
    stages = lay_out(paces, room(850.0, 60.0), 3, 1)
    assert stages is not None and sum(pace.seconds(stages.first) for pace in paces) / 2 <= 60.0


def test_trials_are_as_long_as_full_runs_want_them_where_the_first_leaderboard_has_no_time():
    paces = [FAST] * 8
    early, late = lay_out(paces, room(900.0), 3, 6), lay_out(paces, room(900.0, -5.0), 3, 6)
    assert early is not None and late is not None and late.first < 0.1 < early.first
    assert (early.trial, early.retried) == (early.first, False) and (late.trial, late.retried) == (late.full / 4, True)
    shorter = replace(late, first=late.trial)
    again = work(paces, late, room(900.0)) - work(paces, shorter, room(900.0))
    usual = FAST.seconds(late.trial, tested=False) + FAST.seconds(late.first) - FAST.seconds(late.trial)
    assert again == pytest.approx(8 * usual), "the usual settings are tried, too"


def test_first_runs_that_are_there_are_not_counted_again():
    paces, stages = [FAST] * 8, Stages(8.0, 32.0, 3, 3)
    begun = replace(room(900.0), begun=8.0)
    assert work(paces, stages, room(900.0)) - work(paces, stages, begun) == pytest.approx(8 * FAST.seconds(8.0))
    found = lay_out(paces, begun, 3, 3)
    assert found is not None and found.first == 8.0


def test_lengths_are_the_same_wherever_they_begin():
    assert set(rungs(1000.0, 1.0)) < set(rungs(5000.0, 0.5)) and 32.0 in set(rungs(1000.0))


def test_smaller_batches_need_more_steps_up_to_twice_as_many():
    assert [steps_worth(300, batch) for batch in (128, 64, 32, 4)] == [300, 300, 600, 600]
    paces = [Pace(0.06, 0.2, 0.5)] * 8  # half the step of half the batch: the same plan
    assert lay_out(paces, replace(room(1200.0), batch=32), 3, 6) == lay_out(
        [Pace(0.12, 0.2, 0.5)] * 8, room(1200.0), 3, 6
    )
