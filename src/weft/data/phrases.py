"""Which rows of a text set belong together: equal texts, and phrases with the sentence that they were cut from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def text_groups(texts: list[Any]) -> NDArray[np.int64] | None:
    """(rows,) group numbers: rows with the same text form a group; None where no text occurs twice."""
    _, groups = np.unique(np.array([str(text) for text in texts], dtype=object), return_inverse=True)
    return groups.astype(np.int64) if len(np.unique(groups)) < len(texts) else None
