"""Who gets which rows: training, selection (tuning, early stopping, best checkpoint) and reporting.

The reporting split is the source's test split if it is labelled, else its validation split, else a part held out by
seed. Selection is carved from the training rows, never from the reporting ones. Rows of a group stay together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.data import noise
from weft.errors import WeftError

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Roles:
    """Which split on disk serves which role; None: it is carved from the training split."""

    train: str
    report: str | None
    others: tuple[str, ...]
    notes: tuple[str, ...]


def assign(names: Iterable[str], labelled: Iterable[str]) -> Roles:
    """Choose among the splits on disk, `labelled` being those with targets (all of them, if there is no target)."""
    names, labelled = list(names), set(labelled)
    test = _first(names, labelled, "test")
    validation = _first(names, labelled, "val", "dev", "eval")
    train = _first(names, labelled, "train", "all") or _first(names, labelled, "")
    notes: list[str] = []
    if train in {test, validation}:  # nothing is called train
        train, validation = (validation, None) if validation and validation != test else (test, None)
        test = test if test != train else None
        notes.append(f"there is no training split; {train!r} serves as one")
    if train is None:
        raise WeftError("no split has labels, so nothing can be learnt from it; use --task none for plain text")
    report = test or validation
    if report and test is None:
        unlabelled = [name for name in names if name.startswith("test") and name not in labelled]
        why = "the test split has no labels" if unlabelled else "there is no test split"
        notes.append(f"{why}; results are reported on {report!r}")
    others = tuple(name for name in names if name not in {train, report})
    return Roles(train, report, others, tuple(notes))


def _first(names: list[str], labelled: set[str], *starts: str) -> str | None:
    found = [name for start in starts for name in names if name in labelled and name.lower().startswith(start)]
    return found[0] if found else None


def carve(
    targets: NDArray[np.generic] | None, groups: NDArray[np.int64] | None, share: float, stream: int, rows: int
) -> NDArray[np.bool_]:
    """(rows,) True for about `share` of the groups (rows, if there are none), the same share of every class.

    A group counts as of its first row's class. Of a class with two groups or more, one at least is taken and one left.
    """
    numbers, firsts = np.unique(np.arange(rows) if groups is None else groups, return_index=True)
    taken = np.zeros(len(numbers), dtype=bool)
    strata = np.zeros(len(numbers)) if targets is None else targets[firsts]
    for value in np.unique(strata):
        taken[_share_of(np.flatnonzero(strata == value), share, stream)] = True
    return taken if groups is None else taken[np.searchsorted(numbers, groups)]


def _share_of(members: Index, share: float, stream: int) -> Index:
    count = min(max(1, round(share * len(members))), len(members) - 1)
    return members[np.argsort(noise.bits(stream, members), kind="stable")[:count]]


def stream_cut(role: str, shares: dict[str, float], seed: int, bad: Index) -> Callable[[Index], NDArray[np.bool_]]:
    """For a streamed split: row numbers -> which of them belong to `role`, decided by a hash of each number.

    `shares` gives the roles that take their part before `train` gets the rest; `bad` rows belong to none.
    """

    def keep(rows: Index) -> NDArray[np.bool_]:
        free = ~np.isin(rows, bad)
        for taker, share in shares.items():
            drawn = noise.uniform(noise.key(seed, taker), rows)[:, 0] < share
            if taker == role:
                return free & drawn
            free &= ~drawn
        return free

    return keep
