"""Several processes on this machine through torchrun, with the environment that its elastic restart needs."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from weft import machine
from weft.errors import WeftError

RESTARTS = 3
REFUSAL = "WEFT_REFUSAL"  # the file in which a rank says why the run cannot go on
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
    """In a process that `launch` has started, leave the sentence to the one that started it, and end: another exit code
    than 0 would begin the run anew."""
    told = os.environ.get(REFUSAL)
    if told is None:
        return
    with suppress(FileExistsError), Path(told).open("x", encoding="utf-8") as file:
        json.dump([error.code, str(error)], file)
    leave()


def leave_if_refused() -> None:
    """End a process that was begun anew while another had already said why the run cannot go on."""
    if Path(os.environ.get(REFUSAL, "")).is_file():
        leave()


def leave() -> NoReturn:
    """End at once: the others may wait for this process."""
    sys.stdout.flush()
    os._exit(0)
