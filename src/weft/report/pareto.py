"""The Pareto front: rows that no other row beats in both of two columns."""

from __future__ import annotations

from weft.report.columns import Column, Row


def front(rows: list[Row], first: Column, second: Column) -> list[Row]:
    """Rows with both values that are not dominated, ordered by `second`.

    A row is dominated if another is at least as good in both columns and better in one.
    """
    known = [row for row in rows if row.get(first.key) is not None and row.get(second.key) is not None]

    def goodness(row: Row) -> tuple[float, float]:
        a, b = float(row[first.key]), float(row[second.key])
        return (a if first.higher else -a), (b if second.higher else -b)

    best: list[Row] = []
    highest = float("-inf")
    for row in sorted(known, key=lambda row: (-goodness(row)[1], -goodness(row)[0])):
        a = goodness(row)[0]
        if a > highest or (best and a == highest and goodness(row) == goodness(best[-1])):
            best.append(row)
            highest = max(highest, a)
    return sorted(best, key=lambda row: float(row[second.key]))
