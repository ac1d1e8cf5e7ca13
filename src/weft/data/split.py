"""A split: the examples of one role, readable by index, with an order for every epoch that is a function of a key."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data import noise
from weft.data.bad import refusal
from weft.data.check import examine
from weft.data.config import Modality
from weft.data.labels import Labels
from weft.data.sources.table import Inputs, Shards, Table
from weft.escape import whole

Index = NDArray[np.int64]


@dataclass
class MemorySplit:
    """Some rows of a table in memory, in a fixed order: example i is row rows[i]."""

    table: Table
    rows: Index
    targets: NDArray[Any]  # of the examples, not of the table's rows
    origin: str  # where they come from, in words

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

    def __init__(self, shards: Shards, labels: Labels, modality: Modality, keep: Keep, origin: str) -> None:
        self.shards, self.labels, self.modality = shards, labels, modality
        self.keep, self.origin = keep, origin
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
