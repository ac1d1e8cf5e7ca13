"""What is slow to compute for the rows of a table, kept in the cache block by block.

A block is an entry that grows: it holds the rows that were ever asked for, so that a part of the rows finds what was
computed for more of them, and more rows cost no more than those that are new.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.read.cache import Cache, Tensors

Index = NDArray[np.int64]
Compute = Callable[[Index], Tensor]  # of some rows in order, all that belongs to them end to end


def in_blocks(rows: Index, size: int) -> list[Index]:
    """Rows of a table, in order, by the block of so many rows that they lie in."""
    return np.split(rows, np.flatnonzero(np.diff(rows // size)) + 1) if len(rows) else []


def grown(
    cache: Cache, key: str, about: str, rows: Index, compute: Compute, lengths: Index | None = None
) -> tuple[Index, Tensor]:
    """The rows of a block that are kept, these among them, and what belongs to them end to end; what lacks is computed.

    `lengths` tells how much belongs to each row of the table, by default one of each.
    """

    def enough(found: Tensors) -> bool:
        return bool(np.isin(rows, found["rows"].numpy()).all())

    def build(found: Tensors | None) -> Tensors:
        if found is None:
            return {"rows": torch.from_numpy(rows), "values": compute(rows)}
        known = found["rows"].numpy()
        every = np.concatenate([known, new := np.setdiff1d(rows, known)])
        owners = every if lengths is None else np.repeat(every, lengths[every])
        order = torch.from_numpy(np.argsort(owners, kind="stable"))
        return {"rows": torch.from_numpy(np.sort(every)), "values": torch.cat([found["values"], compute(new)])[order]}

    found = cache.grow(key, about, enough, build)
    return found["rows"].numpy(), found["values"]
