"""What takes how much memory in an epoch of a streamed source: prints a Markdown table, a line a stage.

    python benchmarks/streaming.py FOLDER [--json]

A process of its own that imports one library after the other, opens the Parquet shards in FOLDER as a stream and goes
through one epoch of them; `benchmarks/data.py` makes such shards and asks for the peak. That is the kernel's mark of
this process's own memory (VmHWM). getrusage's ru_maxrss will not do: a process begins with that of the one that has
started it, which may have decoded CIFAR-10 before.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator

from weft import machine

Stage = tuple[str, float, float]  # what, resident MB after it, peak MB so far


def stages(folder: str) -> Iterator[str]:
    """Do one thing after the other, and name each when it is done."""
    yield "Python"
    import numpy  # noqa: F401

    yield "NumPy"
    import torch  # noqa: F401

    yield "torch"
    import pyarrow.parquet

    yield "pyarrow"
    from weft.data import TransformConfig, batches, open_source

    yield "the rest of weft.data"
    source = open_source(folder, stream=True)
    yield "opening: columns, labels, rows held out"
    loader = batches(source, "train", 128, transform=TransformConfig(vocab_size=1000, max_length=64))
    yield "learning a vocabulary"
    began = time.process_time()
    for _ in loader.range():
        pass
    rate = len(loader) * 128 / (time.process_time() - began)
    arrow = pyarrow.default_memory_pool().max_memory() / 2**20
    yield f"an epoch ({rate:,.0f} rows a processor second; Arrow's pool had {arrow:.1f} MB at most)"


def measured(folder: str) -> list[Stage]:
    return [(what, machine.memory_resident() / 2**20, machine.memory_peak() / 2**20) for what in stages(folder)]


def table(found: list[Stage]) -> str:
    lines, before = ["| stage | adds, MB | resident, MB | peak, MB |", "|---|---|---|---|"], 0.0
    for what, resident, peak in found:
        lines.append(f"| {what} | {resident - before:.0f} | {resident:.0f} | {peak:.0f} |")
        before = resident
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--json"]):
        sys.exit("usage: python benchmarks/streaming.py FOLDER [--json]")
    print(json.dumps(measured(sys.argv[1])) if sys.argv[2:] else table(measured(sys.argv[1])))
