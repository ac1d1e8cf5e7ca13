"""`weft study`: the experiments by name, run so that a kill loses nothing and shown from their records."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from weft.errors import WeftError
from weft.studies.library import STUDIES, Request, find


@dataclass(frozen=True)
class Arguments:
    """List, run or show a study: weft study list, weft study run e11, weft study show e11"""

    action: Positional[Literal["list", "run", "show"]] = "list"
    """What to do."""
    name: Positional[str | None] = None
    """Name of the study."""
    source: Positional[str] = "digits"
    """Source that it runs on."""
    output: Path | None = None
    """Folder of the study; by default studies/NAME-SOURCE."""
    seeds: int | None = None
    """Runs of each arm; by default the study's own number."""
    steps: int | None = None
    """Batches of each run; by default the study's own number."""


def run(arguments: Arguments) -> int:
    """Do what was asked."""
    if arguments.action == "list":
        for name, entry in STUDIES.items():
            print(f"{name:<6}{entry.title}")
        return 0
    if arguments.name is None:
        raise WeftError(f"say which study: weft study {arguments.action} NAME ({', '.join(STUDIES)})")
    if any(number is not None and number < 1 for number in (arguments.seeds, arguments.steps)):
        raise WeftError("--seeds and --steps must be at least 1")
    entry = find(arguments.name)
    folder = arguments.output or Path("studies") / f"{arguments.name.lower()}-{Path(arguments.source).name}"
    if arguments.action == "show":
        if arguments.name.lower() != "e1" and not folder.is_dir():
            raise WeftError(f"{folder} does not exist; `weft study run {arguments.name}` makes it")
        entry.show(folder)
        return 0
    command = "weft " + shlex.join(sys.argv[1:])
    entry.run(Request(folder, arguments.source, arguments.seeds, arguments.steps, command, say))
    return 0


def say(sentence: str) -> None:
    print(sentence, flush=True)
