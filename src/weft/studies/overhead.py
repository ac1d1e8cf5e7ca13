"""How much of a study's time went beyond its training loops: start-up, probes, reports, measuring, idle workers."""

from __future__ import annotations

import time
from pathlib import Path

from weft.training.folder import RunFolder


class Overhead:
    """Watches a session of a study, from its beginning on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started = time.perf_counter()
        self.before = {path.parent for path in folder.glob("runs/*/run.yaml")}

    def sentence(self, workers: int) -> str:
        """What is to be told at the end; nothing where no run was trained from beginning to end in this session."""
        wall = time.perf_counter() - self.started
        new = [path.parent for path in self.folder.glob("runs/*/record.json") if path.parent not in self.before]
        training = sum(float((RunFolder(path).record() or {}).get("wall_seconds", 0.0)) for path in new)
        if training <= 0:
            return ""
        beside = f" × {workers} side by side" if workers > 1 else ""
        share = wall * workers / training - 1
        return f"{share:.0%} beyond training: {wall:.0f} s{beside} for {training:.0f} s in the loops of {len(new)} runs"
