"""A split: the examples of one role, readable by index, with an order for every epoch that is a function of a key."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.batch import noise
from weft.data.config import Modality
from weft.data.open.labels import Labels
from weft.data.sources.table import Inputs, Shards, Table, examine, refusal
from weft.errors import WeftError
from weft.terminal import whole

Index = NDArray[np.int64]


@dataclass
class MemorySplit:
    """Some rows of a table in memory, in a fixed order: example i is row rows[i]."""

    table: Table
    rows: Index
    targets: NDArray[Any]  # of the examples, not of the table's rows
    origin: str  # where they come from, in words
    drawn: bool = False  # whether they were held out of another split, so that none on disk has their name
    stored: str = ""  # the name on disk of the split whose rows these are, or some of them

    @property
    def labelled(self) -> bool:
        return self.table.labelled

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, index: Index) -> tuple[Inputs, NDArray[Any]]:
        """Raw inputs and targets of some examples."""
        rows = self.rows[index]
        if isinstance(self.table.inputs, np.ndarray):
            return self.table.inputs[rows], self.targets[index]
        return [self.table.inputs[row] for row in rows], self.targets[index]

    def place(self, example: int) -> str:
        """File and row of an example."""
        return whole(self.table.place(int(self.rows[example])))

    def order(self, stream: int, start: int, stop: int) -> Index:
        """Examples at positions [start, stop) of the shuffled order that `stream` names."""
        return _permutation(stream, len(self))[start:stop]


@lru_cache(maxsize=4)  # this epoch's order is asked for at every step
def _permutation(stream: int, size: int) -> Index:
    return noise.permutation(stream, size)


Keep = Callable[[Index], NDArray[np.bool_]]


@dataclass(frozen=True)
class Checked:
    """A block whose labels are encoded and whose rows have been looked at."""

    inputs: Inputs
    targets: NDArray[Any]
    faults: dict[int, str]


class StreamSplit:
    """Some rows of a streamed table. Blocks are read when they are needed and forgotten soon after.

    An epoch visits the blocks in a shuffled order, a window of them at a time, and shuffles the rows of the window.
    So any batch is found from the blocks' sizes, by reading the blocks of its window alone.
    """

    WINDOW = 8  # blocks whose rows are shuffled together

    def __init__(
        self,
        shards: Shards,
        labels: Labels,
        modality: Modality,
        keep: Keep,
        origin: str,
        drawn: bool = False,
        stored: str = "",
    ) -> None:
        self.shards, self.labels, self.modality = shards, labels, modality
        self.keep, self.origin, self.drawn, self.stored = keep, origin, drawn, stored
        self.starts = np.concatenate([[0], np.cumsum(shards.rows)])  # first row of each block
        counts = [len(self._kept(number)) for number in range(len(shards.rows))]
        self.counts = np.array(counts, dtype=np.int64)
        self.firsts = np.concatenate([[0], np.cumsum(self.counts)])  # first example of each block
        self._recent: OrderedDict[int, Checked] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return int(self.firsts[-1])

    @property
    def labelled(self) -> bool:
        return self.shards.labelled

    @cached_property
    def targets(self) -> NDArray[Any]:
        """Targets of all examples: one pass over the source; for summaries, not for training."""
        return np.concatenate(
            [self.read(np.arange(a, b))[1] for a, b in zip(self.firsts, self.firsts[1:], strict=False)]
        )

    def read(self, index: Index) -> tuple[Inputs, NDArray[Any]]:
        """Raw inputs and targets of some examples."""
        inputs: list[Any] = [None] * len(index)
        targets: list[Any] = [0] * len(index)
        blocks = np.searchsorted(self.firsts, index, side="right") - 1
        for number in np.unique(blocks):
            here = np.flatnonzero(blocks == number)
            rows = self._kept(number)[index[here] - self.firsts[number]]
            block = self._block(int(number))
            for slot, row in zip(here, rows.tolist(), strict=True):
                if row in block.faults:
                    raise refusal(self.shards.place(int(self.starts[number]) + row), block.faults[row])
                inputs[slot], targets[slot] = block.inputs[row], block.targets[row]
        return (np.stack(inputs) if inputs and isinstance(inputs[0], np.ndarray) else inputs), np.array(targets)

    def place(self, example: int) -> str:
        """File and row of an example."""
        number = int(np.searchsorted(self.firsts, example, side="right")) - 1
        return whole(self.shards.place(int(self.starts[number] + self._kept(number)[example - self.firsts[number]])))

    def order(self, stream: int, start: int, stop: int) -> Index:
        """Examples at positions [start, stop) of the shuffled order that `stream` names."""
        blocks = noise.permutation(stream, len(self.counts))
        windows = [blocks[first : first + self.WINDOW] for first in range(0, len(blocks), self.WINDOW)]
        ends = np.cumsum([self.counts[window].sum() for window in windows])
        found: list[Index] = []
        for number in range(
            np.searchsorted(ends, start, side="right"), np.searchsorted(ends, stop - 1, side="right") + 1
        ):
            first = ends[number - 1] if number else 0
            examples = np.concatenate([np.arange(self.firsts[b], self.firsts[b + 1]) for b in windows[number]])
            shuffled = examples[noise.permutation(noise.key(stream, int(number)), len(examples))]
            found.append(shuffled[max(0, start - first) : stop - first])
        return np.concatenate(found)

    def _kept(self, number: int) -> Index:
        """Rows of a block, counted from its start, that belong to this split."""
        rows = np.arange(self.starts[number], self.starts[number + 1])
        return np.flatnonzero(self.keep(rows))

    def _block(self, number: int) -> Checked:
        with self._lock:
            if number not in self._recent:
                block = self.shards.block(number)
                self._recent[number] = Checked(block.inputs, *examine(block, self.labels, self.modality))
                while len(self._recent) > self.WINDOW + 1:
                    self._recent.popitem(last=False)
            self._recent.move_to_end(number)
            return self._recent[number]


Split = MemorySplit | StreamSplit


def drawn(split: Split, stream: int, count: int, every_class: bool = False) -> Split:
    """`count` examples of a split at random, of a streamed one about as many; fewer are part of more.

    With `every_class` one of each comes first: of a rare class there might be none, and nothing to learn then.
    """
    share = count / len(split)
    about = (f"{share:.0%} of {split.origin}", split.drawn, split.stored)
    if isinstance(split, MemorySplit):
        order = split.order(stream, 0, len(split))
        if every_class:
            ahead = np.sort(np.unique(split.targets[order], return_index=True)[1])
            order = np.concatenate([order[ahead], np.delete(order, ahead)])
        chosen = np.sort(order[:count])
        return MemorySplit(split.table, split.rows[chosen], split.targets[chosen], *about)

    def keep(rows: Index) -> NDArray[np.bool_]:
        return split.keep(rows) & (noise.uniform(stream, rows)[:, 0] < share)

    return StreamSplit(split.shards, split.labels, split.modality, keep, *about)


# ---- Who gets which rows: training, validation (tuning, early stopping, best checkpoint) and test.


@dataclass(frozen=True)
class Roles:
    """Which split on disk serves which role; None: it is held out of the training split."""

    train: str
    validation: str | None
    test: str | None
    others: tuple[str, ...]
    notes: tuple[str, ...]


CHOOSING = ("val", "dev", "eval")  # what the names of splits for choices begin with


def assign(names: Iterable[str], labelled: Iterable[str], asked: str | None = None) -> Roles:
    """Choose among the splits on disk, `labelled` being those with targets (all of them, if there is no target).

    `asked` is to be the test split; one that would serve for choices then leaves them to rows held out of train.
    """
    names, labelled = list(names), set(labelled)
    if asked is not None:
        return _assign_around(asked, names, labelled)
    test = _first(names, labelled, "test")
    validation = _first(names, labelled, *CHOOSING)
    train = _first(names, labelled, "train", "all") or _first(names, labelled, "")
    notes: list[str] = []
    if train in {test, validation}:  # nothing is called train
        train, validation = (validation, None) if validation and validation != test else (test, None)
        test = test if test != train else None
        notes.append(f"there is no training split; {train!r} serves as one")
    if train is None:
        raise WeftError("no split has labels, so nothing can be learnt from it; use --task none for plain text")
    if test is None and validation:
        unlabelled = [name for name in names if name.startswith("test") and name not in labelled]
        why = "the test split has no labels" if unlabelled else "there is no test split"
        notes.append(f"{why}; {validation!r} serves as one")
        test, validation = validation, None
    others = tuple(name for name in names if name not in {train, validation, test})
    return Roles(train, validation, test, others, tuple(notes))


def _assign_around(test: str, names: list[str], labelled: set[str]) -> Roles:
    """The same where the test split is given."""
    learnt = _first(names, labelled, "train", "all")
    rest = [name for name in names if name != test]
    there = [name for name in names if name in labelled and name != learnt and len(labelled) > 1]
    train = learnt or _first(rest, labelled, "test") or _first(rest, labelled, "")
    if train is None or test not in there:
        known = f"there are {', '.join(there)}" if there else "there are none beside it; leave out --test-split"
        raise WeftError(f"no labelled split {test!r} to report on; {known}")
    notes = () if learnt else (f"there is no training split; {train!r} serves as one",)
    chosen = _first([name for name in rest if name != train], labelled, *CHOOSING)
    validation = None if test.lower().startswith(CHOOSING) else chosen
    others = tuple(name for name in names if name not in {train, validation, test})
    return Roles(train, validation, test, others, notes)


def _first(names: list[str], labelled: set[str], *starts: str) -> str | None:
    found = [name for start in starts for name in names if name in labelled and name.lower().startswith(start)]
    return found[0] if found else None


def draw_rows(
    targets: NDArray[np.generic] | None, groups: NDArray[np.int64] | None, share: float, stream: int, rows: int
) -> NDArray[np.bool_]:
    """(rows,) True for about `share` of the groups (rows, if there are none), the same share of every class.

    A group counts as of its first row's class. Of a class with two groups or more, one at least is taken and one left.
    Chance goes by a group's number: where groups are numbered by their first rows, a few of them hardly move the cut.
    """
    numbers, firsts = np.unique(np.arange(rows) if groups is None else groups, return_index=True)
    taken = np.zeros(len(numbers), dtype=bool)
    strata = np.zeros(len(numbers)) if targets is None else targets[firsts]
    for value in np.unique(strata):
        members = np.flatnonzero(strata == value)
        taken[members[_share_of(numbers[members], share, stream)]] = True
    return taken if groups is None else taken[np.searchsorted(numbers, groups)]


def _share_of(numbers: Index, share: float, stream: int) -> Index:
    """Which of these are drawn, by their place."""
    count = min(max(1, round(share * len(numbers))), len(numbers) - 1)
    return np.argsort(noise.bits(stream, numbers), kind="stable")[:count]


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


def spread(size: int, count: int) -> Index:
    """`count` numbers spread evenly over range(size), or all of them if there are fewer."""
    return np.unique(np.linspace(0, size - 1, min(count, size)).astype(np.int64))
