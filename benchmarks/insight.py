"""How long each lens takes on networks of CIFAR size, and whether memory stays the same however many images there are.

    python benchmarks/insight.py [--source digits] [--networks resnet20_cifar vit_nano_p4_32 …] [--out insight.json]

Each network is untrained and shown `source` at 32×32: speed does not depend on the weights. Times are of the lens
alone, without starting Python; `all` is the sum and the page. Peak memory is that of fresh processes, for 64 and for
512 examples of the lens `field`, which keeps most.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NETWORKS = ("mlp", "resnet20_cifar", "vit_nano_p4_32", "mixer_nano_p4_32", "gmlp_nano_p4_32")
LIMIT, LIMIT_ALL = 20.0, 120.0  # seconds on two cores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", default="digits")
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        print(peak(arguments.networks[0], arguments.source, arguments.memory_of))
        return
    found: dict[str, dict[str, float]] = {}
    for name in arguments.networks:
        found[name] = times(name, arguments.source)
        print(f"{name:<20}" + "  ".join(f"{lens} {seconds:.1f}" for lens, seconds in found[name].items()), flush=True)
    few, many = (memory(arguments.networks[-1], arguments.source, count) for count in (64, 512))
    print(f"peak memory of field on {arguments.networks[-1]}: {few:.0f} MiB for 64 examples, {many:.0f} for 512")
    slow = [
        (n, lens)
        for n, line in found.items()
        for lens, s in line.items()
        if s > (LIMIT_ALL if lens == "all" else LIMIT)
    ]
    print("over the limit: " + (", ".join(f"{name} {lens}" for name, lens in slow) or "none"))
    if arguments.out:
        arguments.out.write_text(json.dumps({"seconds": found, "mebibytes": {"64": few, "512": many}}, indent=2) + "\n")


def times(name: str, source: str) -> dict[str, float]:
    """Seconds of each lens that fits, and of all with the page."""
    from weft.insight import LENSES, Unfit, look, open_subject, render

    subject = open_subject(name, source)
    next(subject.batches(1))  # opening the source is not the lens's doing
    found: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    for lens in LENSES:
        start = time.perf_counter()
        try:
            found[lens] = look(subject, lens)
        except Unfit:
            continue
        seconds[lens] = time.perf_counter() - start
    start = time.perf_counter()
    render(subject, list(found.values()))
    return {**seconds, "all": sum(seconds.values()) + time.perf_counter() - start}


def memory(name: str, source: str, examples: int) -> float:
    """Peak memory of a process that looks through `field` at so many examples, in MiB."""
    words = [sys.executable, __file__, "--networks", name, "--source", source, "--memory-of", str(examples)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def peak(name: str, source: str, examples: int) -> float:
    from weft import machine
    from weft.insight import look, open_subject

    look(open_subject(name, source), "field", examples=examples)
    return machine.memory_peak() / 2**20


if __name__ == "__main__":
    main()
