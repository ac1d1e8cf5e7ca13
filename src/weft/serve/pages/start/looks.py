"""Looks at sources, each a process that ends with the server; what they found lies in a temporary folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from weft.disk import Damaged, read_object
from weft.serve.pages.start.look import FILE, SHEET
from weft.serve.pages.start.sources import Place
from weft.serve.refusal import Refusal

AT_ONCE = 2
SECONDS = 900.0  # that a look may take


@dataclass
class Look:
    """One look: what it found is read when it has ended."""

    folder: Path
    process: subprocess.Popen[bytes]
    began: float = field(default_factory=time.monotonic)
    found: dict[str, Any] | None = None

    @property
    def sheet(self) -> Path:
        return self.folder / SHEET

    def poll(self) -> dict[str, Any] | None:
        """What was found; None while it is being looked for."""
        if self.found is None and self.process.poll() is None and time.monotonic() - self.began > SECONDS:
            self.process.kill()
            self.process.wait()
            self.found = {"error": f"it was not done after {SECONDS / 60:.0f} minutes"}
        if self.found is None and self.process.poll() is not None:
            try:
                self.found = read_object(self.folder / FILE)
            except Damaged:
                self.found = {
                    "error": f"the look at it ended with {self.process.returncode}; `weft data show` tells more"
                }
        return self.found


class Looks:
    """All looks since the server began, one a source."""

    def __init__(self) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="weft-serve-", ignore_cleanup_errors=True)
        self._looks: dict[str, Look] = {}

    def get(self, place: Place) -> Look | None:
        return self._looks.get(place.source)

    def begin(self, place: Place) -> None:
        """Look at a source, unless somebody does."""
        known = self.get(place)
        if known is not None and known.poll() is None:
            return
        if sum(look.poll() is None for look in self._looks.values()) >= AT_ONCE:
            raise Refusal(503, f"{AT_ONCE} sources are being looked at; wait for them", 5)
        folder = Path(self._place.name) / blake2b(place.source.encode(errors="replace"), digest_size=8).hexdigest()
        folder.mkdir(exist_ok=True)
        (folder / FILE).unlink(missing_ok=True)
        module = "weft.serve.pages.start.look"
        command = [sys.executable, "-P", "-m", module, str(os.getpid()), place.source, str(folder)]
        quiet: Any = subprocess.DEVNULL
        self._looks[place.source] = Look(folder, subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet))
