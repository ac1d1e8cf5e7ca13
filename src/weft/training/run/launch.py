"""Several processes on this machine through torchrun, with the environment that its elastic restart needs."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import NoReturn

from weft import machine

RESTARTS = 3
BEGAN = "WEFT_BEGAN"  # seconds since the epoch: counters of processes need not have one beginning


def launch(folder: Path, processes: int, flags: list[str], began: float | None = None) -> NoReturn:
    """Become torchrun, which starts `processes` ranks of `weft train --resume folder` and restarts them when one dies.

    They get `flags` as well, and the moment from which a time counts, `began` (perf_counter). The process is replaced,
    so that signals reach torchrun directly.
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
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    worker = ["-m", "weft", "train", "--resume", str(folder), *flags]
    command = [sys.executable, "-P", *torchrun, f"--max-restarts={RESTARTS}", *worker]
    sys.stdout.flush()
    os.execve(sys.executable, command, environment)


def launched() -> float | None:
    """In a process that `launch` has started, the moment that it was told (perf_counter)."""
    try:
        return time.perf_counter() - (time.time() - float(os.environ[BEGAN]))
    except (KeyError, ValueError):
        return None
