"""What a probe is asked for. Loads no torch."""

from __future__ import annotations

from pydantic.dataclasses import dataclass
from tyro.conf import Suppress

from weft.data.config import TransformConfig
from weft.training.config import STRICT, Count, Natural, ReadingConfig


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ProbeConfig:
    """Trained networks, and the source whose classes they are to tell apart."""

    starts: Suppress[tuple[str, ...]] = ()
    source: Suppress[str] = ""
    shots: tuple[Count, ...] = ()
    """Training rows of each class in the k-shot figures; by default 1, 5, 10, 25 and 100 where all have them."""
    draws: Count = 5
    """Draws of the rows of a k-shot figure."""
    seed: Natural = 0
    """Decides what is drawn."""
    unsafe_pickle: bool = False
    """Open weights that are a pickle (.pth, .bin), as weights alone, if you trust where they come from."""
    reading: ReadingConfig = ReadingConfig()
    transform: TransformConfig = TransformConfig()
