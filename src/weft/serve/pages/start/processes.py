"""Comparisons that the page has started: processes of the real command, which outlive the server.

page.json in the folder of a comparison says which process works on it, so that a server that begins anew finds, watches
and stops what another has started. The folder is the one that `weft compare` makes; log.txt is what it printed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft import machine
from weft.disk import Damaged, mark, read_object, require_output, validated, write_json
from weft.serve.pages.start.sources import Place
from weft.serve.refusal import Refusal
from weft.studies.compare.candidates import PRESETS
from weft.training.config import seconds
from weft.training.storage.run_folder import name_for

FILE, LOG = "page.json", "log.txt"
LONGEST = 7 * 86400.0  # seconds that a comparison may be given


@dataclass(frozen=True)
class Started:
    """The shape of page.json."""

    process: int
    born: str
    source: str
    time: str
    models: str = "families"

    @property
    def running(self) -> bool:
        """Whether that very process is still there, not another one of its number."""
        return self.born != "" and machine.born(self.process) == self.born


class Processes:
    """Starts and stops comparisons below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._own: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    def listed(self) -> dict[str, Started]:
        """What was started, by the name of its folder."""
        if not self.folder.is_dir():
            return {}
        found = {path.parent.name: started_in(path.parent) for path in sorted(self.folder.glob(f"*/{FILE}"))}
        return {name: each for name, each in found.items() if each is not None}

    def start(self, place: Place, time: str, models: str) -> Path:
        """Start a comparison, or go on with it; returns its folder."""
        if seconds(time) > LONGEST:
            raise Refusal(422, "a comparison may take a week at most; give less time")
        if models not in PRESETS:
            raise Refusal(422, f"the page compares {', '.join(PRESETS)}; use weft compare for others")
        with self._lock:
            self._reap()
            running = [name for name, each in self.listed().items() if each.running]
            if running:
                raise Refusal(409, f"the comparison {running[0]} is under way; wait for it, or stop it")
            folder = self.folder / name_for(place.source)
            require_output(folder)
            mark(folder)
            command = [sys.executable, "-P", "-m", "weft", "compare", place.source, "--time", time, "--models", models,
                       "--output", str(folder)]  # fmt: skip
            with machine.open_own(folder / LOG) as log:
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder,
                    start_new_session=True,
                )  # fmt: skip
            self._own.append(process)
            content: dict[str, Any] = {"process": process.pid, "born": machine.born(process.pid)}
            write_json(folder / FILE, {**content, "source": place.source, "time": time, "models": models})
            return folder

    def stop(self, folder: Path) -> None:
        """End a comparison as Ctrl-C would: what is finished is kept."""
        with self._lock:
            self._reap()
            started = started_in(folder)
            if started is None or not started.running:
                raise Refusal(409, "nothing that the page started is under way there")
            os.kill(started.process, signal.SIGTERM)

    def _reap(self) -> None:
        """Let go of processes that have ended."""
        self._own = [process for process in self._own if process.poll() is None]


def started_in(folder: Path) -> Started | None:
    """What the page has started in a folder, if anything."""
    path = folder / FILE
    try:
        return (
            validated(Started, read_object(path, 1 << 16), path) if path.is_file() and not path.is_symlink() else None
        )
    except Damaged:
        return None
