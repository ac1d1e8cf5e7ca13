"""A dry run: runs in their order on the place that is free first, stages after one another, machine-hours and money."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from weft.studies.engine.simulation import DryRun, PlannedRun, plan_lines, simulate

lengths = st.lists(st.floats(0.0, 1e4), min_size=1, max_size=30)


def end(dry: DryRun, machines: int) -> float:
    return max(placed.end for placed in simulate(dry, machines))


def test_a_schedule_that_can_be_checked_by_hand():
    dry = DryRun([PlannedRun(name, length) for name, length in zip("abcd", (4, 2, 3, 1), strict=True)], "m")
    placed = {one.run.name: (one.machine, one.begin, one.end) for one in simulate(dry, 2)}
    assert placed == {"a": (0, 0, 4), "b": (1, 0, 2), "c": (1, 2, 5), "d": (0, 4, 5)}


@given(lengths, st.integers(1, 9), st.integers(1, 3))
def test_no_schedule_beats_the_bounds_or_misses_them_by_more_than_list_scheduling_can(runs, machines, beside):
    """Graham's bound: at most the work shared by all places and, beside it, one longest run."""
    dry = DryRun([PlannedRun(str(number), length) for number, length in enumerate(runs)], "m", beside)
    shared = sum(runs) / machines / beside
    assert max(shared, max(runs)) - 1e-6 <= end(dry, machines) <= shared + max(runs) + 1e-6


@given(lengths, st.integers(1, 9))
def test_no_place_does_two_runs_at_once(runs, machines):
    dry = DryRun([PlannedRun(str(number), length) for number, length in enumerate(runs)], "m")
    for machine in range(machines):
        ones = sorted((one.begin, one.end) for one in simulate(dry, machines) if one.machine == machine)
        assert all(before[1] <= after[0] + 1e-9 for before, after in itertools.pairwise(ones))


def test_a_stage_waits_for_all_of_the_one_before():
    dry = DryRun([PlannedRun("long", 10), PlannedRun("short", 1), PlannedRun("after", 1, 1)], "m")
    assert next(one for one in simulate(dry, 4) if one.run.name == "after").begin == 10


def test_lines_say_runs_hours_money_and_that_it_is_a_simulation():
    dry = DryRun([PlannedRun(f"vit, seed {seed}", 1800.0) for seed in range(8)], "a machine", 2, price=0.5)
    text = "\n".join(plan_lines("a comparison", dry, 3))
    assert "8 runs, 2 machine-hours, cost 1.00 at 0.5 an hour" in text
    assert "a simulation" in text and "nothing is run" in text
    assert "3 machines: ends after 60 min, 3 machine-hours paid, cost 1.50  <" in text
    assert "machine 3:" in text
