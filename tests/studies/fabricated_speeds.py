"""Rows of the tables of speeds as if they had been measured."""

from __future__ import annotations

from weft.studies.experiments.speed_tables.measure_row import MeasuredRow, Timed
from weft.studies.experiments.speed_tables.published_rows import SpeedRow


def fabricated(row: SpeedRow, seconds: float = 1.0, spread: float = 0.01) -> MeasuredRow:
    """A row that was timed five times."""
    times = [seconds * (1 + spread * part) for part in (-1, -0.5, 0, 0.5, 1)]
    use = Timed(row.side, 1, 10**9, 1 << 30, times, 1 << 30)
    return MeasuredRow(row.title, row.network, "cpu", 10**6, 10**9, use, use, 9.0, {"weft": "0", "commit": "abc",
                       "torch": "2", "processor": "some", "cores": 2, "threads": 1})  # fmt: skip
