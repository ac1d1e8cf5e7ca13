"""torchrun with an ending that can be read: what its processes refuse is said once and not tried again.

`python -m weft.training.run.ranks FOLDER MADE …` with the arguments of torchrun, which `launch` becomes. MADE counts
the folders that were made for the run, the innermost first, or is - for one that was there before: a run that is
refused before its first step leaves no trace.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from weft import machine
from weft.errors import Interrupted, WorkFailed
from weft.terminal import for_stream
from weft.training.run.launch import REFUSAL
from weft.training.storage.run_folder import RunFolder, discard_early


def main(words: list[str]) -> int:
    """The exit code of the run: that of a refusal, if there is one."""
    folder, made, *rest = words
    with tempfile.TemporaryDirectory(prefix="weft-") as place:
        told = Path(place, "refusal.json")
        os.environ[REFUSAL] = str(told)
        code, sentence = together(rest, folder)
        with suppress(OSError, ValueError):
            code, sentence = json.loads(told.read_text(encoding="utf-8"))
            if made != "-":
                discard_new(Path(folder), int(made))
    if sentence:
        print("weft: " + for_stream(" ".join(sentence.split()), sys.stderr), file=sys.stderr, flush=True)
    return int(code)


def together(words: list[str], folder: str) -> tuple[int, str]:
    """How torchrun ended, as an exit code and a sentence."""
    os.environ.setdefault("LOGLEVEL", "CRITICAL")  # it tells each end of a process several times over
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    try:
        run.main(words)
    except SignalException:
        return Interrupted.code, ""  # the first process has said how to go on
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        again = f"continue with: weft train --resume {folder}"
        return WorkFailed.code, f"process {rank} of the run ended by {machine.death(failure.exitcode)}; {again}"
    return 0, ""


def discard_new(folder: Path, made: int) -> None:
    """Take away a run that has no plan, with the folders made for it."""
    if RunFolder(folder).plan() is None:
        discard_early(folder, [folder, *folder.parents][:made])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
