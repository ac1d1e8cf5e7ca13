"""From the command to its first step: prints a Markdown table of what takes how long.

    python benchmarks/start.py --rounds 7

Each round starts `weft train digits --model mlp --steps 1` in a process of its own, up to the end of step 1, and in
turn with it `python -c "import torch"`, so that a busy neighbour slows both. Processor time is that of the thread that
does the work: the others of torch spin while they wait. Medians over the rounds but the first, which has an empty cache
and stands apart.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

COMMAND = ["train", "digits", "--model", "mlp", "--steps", "1"]
WANTED = 3.0  # seconds from the command to the end of step 1, on a quiet machine
Stages = dict[str, tuple[float, float]]  # what: processor seconds and wall seconds


class Stopwatch:
    """Processor and wall time of one stage after the other."""

    def __init__(self, called: float) -> None:
        self.found: Stages = {}
        self.last = (0.0, called)
        self.before = 0.0  # processor time of the process that this one was forked from

    def now(self) -> tuple[float, float]:
        return self.before + time.thread_time(), time.time()

    def mark(self, stage: str) -> None:
        """End a stage here."""
        now = self.now()
        self.found[stage] = (now[0] - self.last[0], now[1] - self.last[1])
        self.last = now


def stages(called: float) -> None:
    """Be the command, whose process was started at `called`; print what each stage took, and end after step 1."""
    watch = Stopwatch(called)
    from weft import machine
    from weft.commands import main as command

    supervise = command.supervise

    def supervised(*arguments: Any) -> None:
        watch.before = time.thread_time()
        supervise(*arguments)  # returns in a child, whose clock begins anew

    def marked(module: Any, name: str, stage: str, then: Callable[[], None] = lambda: None) -> None:
        work = getattr(module, name)

        def timed(*arguments: Any, **options: Any) -> Any:
            found = work(*arguments, **options)
            watch.mark(stage)
            then()
            return found

        setattr(module, name, timed)

    def load() -> None:
        watch.mark("command line")
        with getattr(machine, "loading", nullcontext)():  # as the command does it
            import torch  # noqa: F401

            watch.mark("import torch")
            from weft.training.loop import loop
            from weft.training.run import lifecycle

            watch.mark("other imports")
        marked(lifecycle, "open_inputs", "data")
        marked(lifecycle, "assemble", "network and optimiser")
        marked(lifecycle, "measure_plan", "plan", lambda: marked(loop, "update", "step 1", end))

    def end() -> None:
        print(json.dumps(watch.found), file=sys.stderr, flush=True)
        os._exit(0)

    def parse(*arguments: Any) -> Any:
        found = parsed(*arguments)
        load()
        return found

    parsed, command.parse, command.supervise = command.parse, parse, supervised
    sys.argv = ["weft", *COMMAND]
    watch.mark("Python")
    command.main()


def run(words: list[str], folder: Path) -> tuple[float, float, str]:
    """Processor seconds, wall seconds and standard error of a command."""
    began, before = time.perf_counter(), os.times()
    environment = {**os.environ, "WEFT_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    after = os.times()
    spent = after.children_user - before.children_user + after.children_system - before.children_system
    return spent, time.perf_counter() - began, done.stderr


def rounds(count: int) -> tuple[list[Stages], list[tuple[float, float]]]:
    """What the stages took in each round, and importing torch alone beside them."""
    found: list[Stages] = []
    alone: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(count):
            told = run([str(Path(__file__).resolve()), "--called", str(time.time())], Path(scratch))[2]
            found.append(json.loads(told.splitlines()[-1]))
            alone.append(run(["-c", "import torch"], Path(scratch))[:2])
    return found, alone


def table(found: list[Stages], alone: list[tuple[float, float]]) -> str:
    """Medians of all rounds but the first, which fills the cache."""
    middle = {stage: [statistics.median(one[stage][n] for one in found[1:]) for n in (0, 1)] for stage in found[0]}
    whole = [statistics.median(sum(taken[n] for taken in one.values()) for one in found[1:]) for n in (0, 1)]
    first = [sum(taken[n] for taken in found[0].values()) for n in (0, 1)]
    torch = [statistics.median(one[n] for one in alone[1:]) for n in (0, 1)]
    lines = ["| stage | processor s | share | wall s |", "|---|---|---|---|"]
    lines += [f"| {stage} | {cpu:.2f} | {cpu / whole[0]:.0%} | {wall:.2f} |" for stage, (cpu, wall) in middle.items()]
    lines += [f"| **to the end of step 1** | {whole[0]:.2f} | | {whole[1]:.2f} |"]
    lines += [f"| the same with an empty cache, once | {first[0]:.2f} | | {first[1]:.2f} |"]
    lines += [f'| `python -c "import torch"`, in turns | {torch[0]:.2f} | | {torch[1]:.2f} |']
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--called", type=float, help="for the script itself: be the command, called at that time")
    arguments = parser.parse_args()
    if arguments.called is not None:
        stages(arguments.called)
    before = os.getloadavg()[0]
    found, alone = rounds(max(2, arguments.rounds))
    print(f"{os.cpu_count()} cores, load average {before:.1f} before and {os.getloadavg()[0]:.1f} after\n")
    print(table(found, alone))
    print(f"\nWanted: at most {WANTED:.0f} s of wall time to the end of step 1 on a quiet machine.")


if __name__ == "__main__":
    main()
