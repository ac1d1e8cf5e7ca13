"""Does `--compile auto` choose what is faster in total? Twelve pairs of network and length, each run both ways.

    python benchmarks/compiling.py CIFAR10_FOLDER [--only mixer]

Three commands a pair, in turn: with `--compile`, with `--no-compile`, and with neither, each a process of its own whose
wall time counts, from the command to the figure on the test rows. Right is the faster of the two ways, or either where
they differ by less than 3 %. What the third takes beyond the way it chose is the price of finding out, once a network
and machine. Wanted: 12 of 12.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NETWORKS = {  # by name: the steps of a short and of a long run
    "mlp": (300, 6000),
    "resnet8_cifar": (100, 2000),
    "mixer_pico_p4_32": (100, 2000),
    "gmlp_pico_p4_32": (100, 1500),
    "vit_pico_p4_32": (100, 1500),
    "mixer_nano_p4_32": (50, 400),
}
ALIKE = 1.03  # of two times whose ratio is below this, either is right
WAYS = {"compiled": ["--compile"], "eager": ["--no-compile"], "auto": []}


def train(source: Path, model: str, steps: int, flags: list[str], output: Path) -> tuple[float, bool]:
    """The wall seconds of a run, and whether it was compiled."""
    asked = ["--model", model, "--steps", str(steps), "--batch-size", "64", "--lr", "0.001", "--test-rows", "1000"]
    command = [sys.executable, "-m", "weft", "train", str(source), *asked, *flags, "--output", str(output)]
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    taken = time.perf_counter() - began
    return taken, bool(json.loads((output / "record.json").read_text())["plan"]["compile"])


def row(source: Path, model: str, steps: int, scratch: Path) -> tuple[str, bool]:
    """A row of the table, and whether the choice was right."""
    taken = {way: train(source, model, steps, flags, scratch / way) for way, flags in WAYS.items()}
    compiled, eager = taken["compiled"][0], taken["eager"][0]
    chosen = "compiled" if taken["auto"][1] else "eager"
    right = taken[chosen][0] <= ALIKE * min(compiled, eager)
    price = taken["auto"][0] - taken[chosen][0]
    words = f"{chosen} ({'right' if right else 'wrong'})"
    return f"| {model} | {steps:,} | {compiled:.1f} | {eager:.1f} | {words} | {price:+.1f} |", right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("--only", default="", help="the networks with this in their names")
    asked = parser.parse_args()
    print("| network | steps | compiled, s | eager, s | chosen | found out in, s |\n|---|---|---|---|---|---|")
    judged = []
    for model, lengths in NETWORKS.items():
        for steps in lengths if asked.only in model else ():
            with tempfile.TemporaryDirectory() as scratch:
                line, right = row(asked.source, model, steps, Path(scratch))
            judged.append(right)
            print(line, flush=True)
    print(f"\n{sum(judged)} of {len(judged)} right")


if __name__ == "__main__":
    main()
