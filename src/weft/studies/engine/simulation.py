"""A dry run: how long the runs of a study would take on so many machines, and what that would cost. Nothing is trained.

A simulation: every run lasts as long as was predicted and goes, in the order of the study, to the place that is free
first. Machines are like the one that the prediction is for; none fails, and nobody else uses them.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from weft.report.columns import duration

LISTED = 4  # runs of a machine that a schedule names
OTHERS = (1, 2, 4, 8, 16)  # numbers of machines that stand beside the one asked for


@dataclass(frozen=True)
class PlannedRun:
    """A run that may be made; runs of a later `stage` begin when all of the earlier ones have ended."""

    name: str
    seconds: float
    stage: int = 0


@dataclass(frozen=True)
class DryRun:
    """The runs of a study as predicted for one kind of machine."""

    runs: list[PlannedRun]
    machine: str
    """what seconds were predicted for"""
    side_by_side: int = 1
    """runs of one machine at a time"""
    price: float = 0.0
    """of an hour of a machine"""
    notes: list[str] = field(default_factory=list)

    @property
    def hours(self) -> float:
        """Machine-hours, if no machine is ever idle."""
        return sum(run.seconds for run in self.runs) / self.side_by_side / 3600


@dataclass(frozen=True)
class Placed:
    """A run in a schedule; seconds count from the beginning of the study."""

    run: PlannedRun
    machine: int
    begin: float
    end: float


def simulate(dry: DryRun, machines: int) -> list[Placed]:
    """Which run goes where and when."""
    found: list[Placed] = []
    now = 0.0
    for stage in sorted({run.stage for run in dry.runs}):
        free = [(now, place, place % machines) for place in range(machines * dry.side_by_side)]
        for run in dry.runs:
            if run.stage == stage:
                begin, place, machine = heapq.heappop(free)
                found.append(Placed(run, machine, begin, begin + run.seconds))
                heapq.heappush(free, (begin + run.seconds, place, machine))
        now = max(placed.end for placed in found)
    return found


def plan_lines(title: str, dry: DryRun, machines: int) -> Iterator[str]:
    """The plan in lines: runs, machine-hours, money, and the schedule."""
    side = f", {dry.side_by_side} runs side by side" if dry.side_by_side > 1 else ""
    cost = f"cost {dry.hours * dry.price:,.2f} at {dry.price:g} an hour"
    yield f"plan of {title}: {len(dry.runs)} runs, {hours(dry.hours)}, {cost}"
    yield f"predicted for {dry.machine}{side}; nothing is run"
    yield from dry.notes
    if not dry.runs:
        return
    yield "a simulation, with machines like that one, none of which fails or waits for others:"
    for count in sorted({machines, *OTHERS}):
        placed = simulate(dry, count)
        end = max(one.end for one in placed)
        paid = count * end / 3600
        mark = "  <" if count == machines else ""
        cost = f"{hours(paid)} paid, cost {paid * dry.price:,.2f}"
        yield f"  {count:>4} machine{'s' * (count > 1)}: ends after {clock(end)}, {cost}{mark}"
    yield from schedule_lines(simulate(dry, machines))


def schedule_lines(placed: list[Placed]) -> Iterator[str]:
    """What every machine does, the first few of its runs by name."""
    by_machine: dict[int, list[Placed]] = defaultdict(list)
    for one in placed:
        by_machine[one.machine].append(one)
    yield f"schedule for {len(by_machine)} machine{'s' * (len(by_machine) > 1)}:"
    for machine, ones in sorted(by_machine.items()):
        named = ", ".join(f"{one.run.name} ({clock(one.begin)}–{clock(one.end)})" for one in ones[:LISTED])
        last = clock(max(one.end for one in ones))
        more = f" and {len(ones) - LISTED} more until {last}" if len(ones) > LISTED else ""
        yield f"  machine {machine + 1}: {named}{more}"


def clock(seconds: float) -> str:
    """A time since the beginning: 40 s, 12 min, 3.5 h, 2,150 h."""
    return f"{seconds:.0f} s" if seconds < 100 else duration(seconds) if seconds < 1e6 else f"{seconds / 3600:,.0f} h"


def hours(count: float) -> str:
    """A number of machine-hours for people."""
    return f"{count:,.3g} machine-hours" if count < 1000 else f"{count:,.0f} machine-hours"
