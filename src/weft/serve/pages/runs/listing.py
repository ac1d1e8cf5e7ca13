"""The table of runs as it is asked for: filtered, sorted and cut into pages, all of it stated by the address."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from weft.serve.pages.numbers import whole
from weft.serve.pages.runs.patterns import BadPattern, matcher
from weft.serve.pages.runs.run_index import RunRow

SIZE = 50  # rows of a page
STATES = ("running", "finished", "stopped", "failed", "unreadable")
LETTERS = 300  # that a value of the address may have


@dataclass(frozen=True)
class Column:
    """A column: how it is called, by what it is sorted, and whether the first click puts the largest first."""

    title: str
    key: Callable[[RunRow], Any]
    largest: bool = False
    number: bool = False


COLUMNS: dict[str, Column] = {
    "name": Column("Run", lambda row: row.name.lower()),
    "state": Column("State", lambda row: row.state),
    "value": Column("Metric", lambda row: row.value, largest=True, number=True),
    "model": Column("Network", lambda row: row.model.lower()),
    "source": Column("Source", lambda row: row.source.lower()),
    "seed": Column("Seed", lambda row: row.seed, number=True),
    "steps": Column("Steps", lambda row: row.steps, largest=True, number=True),
    "seconds": Column("Time", lambda row: row.seconds, largest=True, number=True),
    "changed": Column("Changed", lambda row: row.changed, largest=True, number=True),
}


@dataclass(frozen=True)
class Wish:
    """What the address asks for."""

    q: str = ""
    state: str = ""
    study: str = ""
    sort: str = "changed"
    order: str = "down"
    page: int = 1

    @classmethod
    def read(cls, values: Any) -> Wish:
        """From the values of an address; what makes no sense counts as not said."""
        sort = values.get("sort") if values.get("sort") in COLUMNS else "changed"
        usual = "down" if COLUMNS[sort].largest else "up"
        order = values.get("order") if values.get("order") in ("up", "down") else usual
        state = values.get("state") if values.get("state") in STATES else ""
        return cls(
            values.get("q", "")[:LETTERS],
            state,
            values.get("study", "")[:LETTERS],
            sort,
            order,
            whole(values.get("page")),
        )

    def address(self, **changes: Any) -> str:
        """The address of the same list with some things changed."""
        wish, usual = replace(self, **changes), Wish()
        said = {name: value for name, value in vars(wish).items() if value != getattr(usual, name)}
        return "/?" + urlencode(said) if said else "/"

    def sorted_by(self, name: str) -> str:
        """The address of the same list sorted by a column, the other way round if it is already."""
        usual = "down" if COLUMNS[name].largest else "up"
        order = ("up" if self.order == "down" else "down") if name == self.sort else usual
        return self.address(sort=name, order=order, page=1)


@dataclass(frozen=True)
class Listing:
    """One page of the table."""

    wish: Wish
    rows: list[RunRow]
    found: int
    total: int
    unread: int
    states: dict[str, int]
    trouble: str = ""

    @property
    def pages(self) -> int:
        return max(1, math.ceil(self.found / SIZE))


def listing(rows: list[RunRow], wish: Wish) -> Listing:
    """The rows that are asked for; a pattern that cannot be used is told, and matches as plain letters."""
    trouble, named = "", [row for row in rows if not wish.study or row.study == wish.study]
    try:
        matches = matcher(wish.q)
        named = [row for row in named if matches(searched(row))]
    except BadPattern as error:
        trouble, letters = str(error), wish.q.lower()
        named = [row for row in named if letters in searched(row).lower()]
    counts = Counter(row.state for row in named)
    found = [row for row in named if not wish.state or row.state == wish.state]
    column = COLUMNS[wish.sort]
    known = sorted((row for row in found if column.key(row) is not None), key=lambda row: row.name)
    known.sort(key=column.key, reverse=wish.order == "down")
    found = known + [row for row in found if column.key(row) is None]
    page = min(wish.page, max(1, math.ceil(len(found) / SIZE)))
    wish, start = replace(wish, page=page), (page - 1) * SIZE
    states = {state: counts[state] for state in STATES if counts[state]}
    unread = sum(row.state == "unread" for row in rows)
    return Listing(wish, found[start : start + SIZE], len(found), len(rows), unread, states, trouble)


def searched(row: RunRow) -> str:
    """The words of a row that a filter looks at."""
    return f"{row.name} {row.source} {row.model} {row.study} seed{row.seed}"
