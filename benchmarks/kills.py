"""A campaign of kills: runs are killed at random moments until they are done, and must end with the same bits.

    python benchmarks/kills.py [--kills 100] [--seed 0]
    python benchmarks/kills.py --ranks 20         # a rank of two is killed; torchrun must recover each time

Families take turns, with one and with two threads; half of the kills are SIGKILL, a quarter SIGTERM, and a quarter
SIGKILL while checkpoints are written at every step. Prints a table and ends with code 1 when a single bit differs.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1] / "tests")  # not this folder, whose training.py would hide theirs
from training.runs import FAMILIES, assert_same_bits, configure, curve, interrupt, last_checkpoint, spawn  # noqa: E402
from training.test_distribution import rank_of, torchrun, train_together, wait_for_step  # noqa: E402
from weft.training.storage.run_folder import create  # noqa: E402

FORMS = (("SIGKILL", signal.SIGKILL, 5), ("SIGKILL while writing", signal.SIGKILL, 1), ("SIGTERM", signal.SIGTERM, 5))
PATIENCE = 1200  # seconds for a run of half a minute: a busy machine is no failure


def finish(config, folder: Path) -> None:
    """Train to the end in a process of its own."""
    process = spawn(config, folder)
    process.join()
    assert process.exitcode == 0, f"a run ended with code {process.exitcode}"


def campaign(kills: int, chance: random.Random) -> bool:
    """Kill runs until `kills` have hit; True when every run ended with the bits of its undisturbed twin."""
    hits, same, differing = Counter[str](), 0, 0
    while sum(hits.values()) < kills:
        family = list(FAMILIES)[(same + differing) % len(FAMILIES)]
        threads = 1 + (same + differing) // len(FAMILIES) % 2
        name, how, every = FORMS[(same + differing) % len(FORMS)]
        config = configure(family, 120, model_ema_decay=0.9, checkpoint_every=every, log_every=5, threads=threads)
        with tempfile.TemporaryDirectory() as root:
            whole, cut = Path(root) / "whole", Path(root) / "cut"
            finish(config, whole)
            for _ in range(4):
                hits[name] += interrupt(spawn(config, cut), cut, how, chance)
            finish(config, cut)
            try:
                assert_same_bits(last_checkpoint(whole), last_checkpoint(cut))
                assert curve(whole) == curve(cut)
                same += 1
            except AssertionError as difference:
                differing += 1
                print(f"{family}, {threads} threads, {name}: {difference}")
        print(f"{sum(hits.values())} kills, {same} runs the same, {differing} different", flush=True)
    print("| kind of kill | kills |\n|---|---|")
    for name, count in hits.items():
        print(f"| {name} | {count} |")
    return differing == 0


def ranks(trials: int) -> bool:
    """Kill one rank of two, `trials` times; True when torchrun's restart ended each run with the same bits."""
    config = configure("mlp", 300, checkpoint_every=5, log_every=5, eval_every=800)
    recovered = 0
    with tempfile.TemporaryDirectory() as root:
        train_together(config, Path(root) / "whole")
        for trial in range(trials):
            folder = Path(root) / str(trial)
            create(folder).write_asked(config)
            process = torchrun(folder)
            wait_for_step(folder, 20, PATIENCE)
            os.kill(rank_of(process.pid, trial % 2), signal.SIGKILL)
            process.communicate(timeout=PATIENCE)
            assert_same_bits(last_checkpoint(Path(root) / "whole"), last_checkpoint(folder))
            recovered += process.returncode == 0
            print(f"recovered {recovered} of {trial + 1}", flush=True)
    return recovered == trials


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--ranks", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    sound = ranks(arguments.ranks) if arguments.ranks else campaign(arguments.kills, random.Random(arguments.seed))
    sys.exit(0 if sound else 1)


if __name__ == "__main__":
    main()
