"""Several processes on this machine through torchrun, with the environment that its elastic restart needs."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import NoReturn

from weft import machine
from weft.errors import WeftError

RESTARTS = 3
REFUSAL = "WEFT_REFUSAL"  # the folder in which ranks say why the run cannot go on
TOGETHER = 3.0  # seconds within which all say so, where all do
BEGAN = "WEFT_BEGAN"  # seconds since the epoch: counters of processes need not have one beginning


def launch(
    folder: Path, processes: int, flags: list[str], began: float | None = None, made: int | None = None
) -> NoReturn:
    """Become torchrun, which starts `processes` ranks of `weft train --resume folder` and restarts them when one dies.

    They get `flags` as well, and the moment from which a time counts, `began` (perf_counter). For a new run, `made`
    folders were made. The process is replaced, so that signals reach torchrun directly.
    """
    cores = machine.cores()
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(max(1, cores // processes)),
        # without it torchrun's restart hangs or fails about every second time (6 of 13 trials; 0 of 12 with it)
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "PYTHONSAFEPATH": "1",  # modules are not looked for beside the data: as -P, for the ranks too
        **({} if began is None else {BEGAN: repr(time.time() - (time.perf_counter() - began))}),
    }
    new = [str(folder), "-" if made is None else str(made)]
    torchrun = ["--standalone", f"--nproc-per-node={processes}", f"--max-restarts={RESTARTS}"]
    worker = ["-m", "weft", "train", "--resume", str(folder), *flags]
    command = [sys.executable, "-P", "-m", "weft.training.run.ranks", *new, *torchrun, *worker]
    sys.stdout.flush()
    os.execve(sys.executable, command, environment)


def launched() -> float | None:
    """In a process that `launch` has started, the moment that it was told (perf_counter)."""
    try:
        return time.perf_counter() - (time.time() - float(os.environ[BEGAN]))
    except (KeyError, ValueError):
        return None


def hand_in(error: WeftError) -> None:
    """In a process that `launch` has started, leave the sentence to the one that started it, and end.

    Where all processes refuse, they end with 0, since another exit code would begin the run anew. One that refuses
    alone ends with 1, so that the others do not wait for it for ever; those that are begun anew end at once.
    """
    if not os.environ.get(REFUSAL):
        return
    place = Path(os.environ[REFUSAL])
    own = place / f"{os.environ['RANK']}.part"
    try:
        own.write_text(json.dumps([error.code, str(error)]), encoding="utf-8")
        own.replace(own.with_suffix(".json"))
    except OSError:  # it is said here then
        return
    until = time.monotonic() + TOGETHER
    while not (all_refuse := len(handed_in(place)) >= int(os.environ["WORLD_SIZE"])) and time.monotonic() < until:
        time.sleep(0.02)
    leave(0 if all_refuse else 1)


def handed_in(place: Path) -> list[Path]:
    """The files in which processes have left their sentences."""
    return sorted(place.glob("*.json"))


def leave_if_refused() -> None:
    """End a process that was begun anew while another had already said why the run cannot go on."""
    if os.environ.get(REFUSAL) and handed_in(Path(os.environ[REFUSAL])):
        leave(0)


def leave(code: int) -> NoReturn:
    """End at once: the others may wait for this process."""
    sys.stdout.flush()
    os._exit(code)
