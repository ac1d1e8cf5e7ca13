"""inference.json: how fast a run's network is in use, measured once and kept in its folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from weft.disk import Damaged, write_json
from weft.studies.engine.study import read_stored

FILE = "inference.json"


@dataclass(frozen=True)
class Inference:
    """Examples a second in batches, seconds for one, the threads that it took, and the tokens of a mean text."""

    throughput: float
    latency: float
    threads: float = 1.0
    tokens: float | None = None

    def save(self, folder: Path) -> None:
        write_json(folder / FILE, asdict(self))


def read_inference(folder: Path) -> Inference | None:
    """What was measured of a run; None where nothing was, or where it is damaged and can be measured again."""
    try:
        return read_stored(folder / FILE, Inference, "")
    except Damaged:
        return None
