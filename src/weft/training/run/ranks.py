"""torchrun with an ending that can be read: what its processes refuse is said once and not tried again.

`python -m weft.training.run.ranks FOLDER MADE …` with the arguments of torchrun, which `launch` becomes. MADE counts
the folders that were made for the run, the innermost first, or is - for one that was there before: a run that is
refused before its first step leaves no trace.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from weft import machine
from weft.errors import Interrupted, WeftError, WorkFailed
from weft.terminal import complain
from weft.training.run.launch import REFUSAL, handed_in
from weft.training.storage.run_folder import ENDING, RunFolder, discard_early


def main(words: list[str]) -> int:
    """The exit code of the run: that of a refusal, if there is one."""
    folder, made, *rest = words
    run = RunFolder(Path(folder))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # torchrun has its own
    with tempfile.TemporaryDirectory(prefix="weft-") as place:
        os.environ[REFUSAL] = place
        code, sentence = together(rest, run)
        if found := handed_in(Path(place)):
            code, sentence = refusal(found)
    if found and made != "-" and code != Interrupted.code:
        discard_new(run, int(made))
    if sentence:
        complain(sentence)
    return code


def together(words: list[str], run: RunFolder) -> tuple[int, str]:
    """How torchrun ended, as an exit code and a sentence."""
    os.environ.setdefault("LOGLEVEL", "CRITICAL")  # it tells each end of a process several times over
    try:
        from torch.distributed import run as torchrun
        from torch.distributed.elastic.multiprocessing.api import SignalException
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

        try:
            torchrun.main(words)
        except SignalException as error:
            raise KeyboardInterrupt from error
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
            died = f"process {rank} of the run ended by {machine.death(failure.exitcode)}"
            return WorkFailed.code, f"{died}; continue with: {run.resuming()}"
    except KeyboardInterrupt:
        return Interrupted.code, "" if is_planned(run) else f"interrupted; continue with: {run.resuming()}"
    return 0, ""


def refusal(found: list[Path]) -> tuple[int, str]:
    """What a process has said, as an exit code and a sentence."""
    with suppress(OSError, ValueError):
        code, sentence = json.loads(found[0].read_text(encoding="utf-8"))
        return int(code), str(sentence)
    return WorkFailed.code, "a process has refused the run, and why cannot be read; see that the disk has room"


def is_planned(run: RunFolder) -> bool:
    """Whether training has begun: the first process says then how to go on."""
    with suppress(WeftError):
        return run.plan() is not None
    return False


def discard_new(run: RunFolder, made: int) -> None:
    """Take away a run that has no plan, with the folders made for it, unless another process is at work there."""
    with suppress(WeftError):
        lock = run.lock(ENDING)
        try:
            if run.plan() is None:
                discard_early(run.path, [run.path, *run.path.parents][:made])
        finally:
            lock.release()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
