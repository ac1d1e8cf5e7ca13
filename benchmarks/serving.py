"""The server under fuzzing and under load, with networks that are trained for it in seconds.

python benchmarks/serving.py fuzz [--requests 10000]      requests that mean harm; memory is watched
python benchmarks/serving.py schema [--requests 10000]    the same with requests that schemathesis makes
python benchmarks/serving.py load [--seconds 120]         twice the capacity: what is served, how fast, what is refused
python benchmarks/serving.py batching [--seconds 10]      throughput with batches against one at a time
python benchmarks/serving.py overhead [--requests 2000]   a request of one picture against the same call in Python
python benchmarks/serving.py all                          one after the other, and a table at the end

Wanted: no status of 500 or above but 503, no traceback, memory flat; at twice the capacity at least 90 % of it served,
the 99th percentile of what was accepted within (queue / batch + 2) × the time of a batch, and half of the refusals
within the time of one batch; batches at least 2 ×; at most 1.5 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from serve.fuzzer import fuzz, pictures
from serve.traffic import Answer, capacity, constant_rate, one_by_one, request

QUEUE, BATCH = 128, 32
Verdict = tuple[bool, str]  # whether what is wanted was met, and what was measured
NETWORKS = {
    "picture": ["digits", "--model", "resnet20_cifar", "--img-size", "32", "--no-compile"],
    "words": ["pydocs", "--model", "gmlp_text_tiny"],
    "cells": ["breast_cancer", "--model", "mlp"],
    "sugar": ["diabetes", "--model", "mlp"],
}


def train(folder: Path, *names: str) -> None:
    """Runs of a few steps, where they are not there already."""
    for name in names:
        if (folder / name / "model.safetensors").is_file():
            continue
        words = ["train", *NETWORKS[name], "--steps", "2", "--output", str(folder / name)]
        subprocess.run([sys.executable, "-m", "weft", *words], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[tuple[int, Path]]:
    """The command, at a free port; yields the port and the file with all that it says."""
    log = folder / "server.log"
    command = [sys.executable, "-m", "weft", "serve", str(folder), "--port", "0", *words]
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
    try:
        while not (found := re.search(r":(\d+)/", log.read_text())):
            if process.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.05)
        yield int(found[1]), log
    finally:
        process.terminate()
        process.wait(60)


def metric(port: int, name: str) -> float:
    """The sum of a metric of the server over its labels."""
    body = asyncio.run(one_by_one(port, request("GET", "/metrics"), 1))[0].body.decode()
    return sum(float(found[1]) for found in re.finditer(rf"^{name}(?:{{.*}})? (\S+)$", body, re.MULTILINE))


def part_fuzz(folder: Path, arguments: argparse.Namespace) -> Verdict:
    """Requests that mean harm; memory after each tenth of them."""
    train(folder, *NETWORKS)
    statuses: Counter[int] = Counter()
    resident = []
    with serving(folder) as (port, log):
        for share in range(10):
            kind = "own" if arguments.asked == "fuzz" else "schemathesis"
            statuses += fuzz(port, kind, list(NETWORKS), arguments.requests // 10, seed=share)
            resident.append(metric(port, "process_resident_memory_bytes") / 2**20)
            print(f"{sum(statuses.values())} answers, {resident[-1]:.0f} MiB", flush=True)
        said = log.read_text()
    bad = [status for status in statuses if (status >= 500 and status != 503) or status == 0]
    growth, answered = resident[-1] / resident[1] - 1, sum(statuses.values())
    told = f"statuses {dict(sorted(statuses.items()))}; memory grew by {growth:.1%} from the second tenth on"
    enough = answered >= 0.95 * arguments.requests  # some clients hang up
    return not bad and enough and "Traceback" not in said and growth < 0.1, told


def latencies(answers: list[Answer], status: int) -> list[float]:
    return sorted(answer.seconds for answer in answers if answer.status == status)


def percentile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def part_load(folder: Path, arguments: argparse.Namespace) -> Verdict:
    """Twice the capacity."""
    train(folder, "picture")
    body = request("POST", "/models/picture", pictures(1)[0])
    with serving(folder, "--max-queue", str(QUEUE), "--max-batch", str(BATCH)) as (port, _):
        asyncio.run(capacity(port, body, 2 * BATCH, 2.0))  # loads the network
        most = asyncio.run(capacity(port, body, 2 * BATCH, max(5.0, arguments.seconds / 10)))
        before = metric(port, "weft_batch_seconds_sum"), metric(port, "weft_batch_size_sum")
        answers, lost = asyncio.run(constant_rate(port, body, 2 * most, arguments.seconds))
        computing, computed = (metric(port, "weft_batch_seconds_sum"), metric(port, "weft_batch_size_sum"))
    served, refused = latencies(answers, 200), latencies(answers, 503)
    share, service = len(served) / arguments.seconds / most, BATCH / most
    bound = (QUEUE / BATCH + 2) * service
    print(f"capacity {most:.0f}/s; asked {2 * most:.0f}/s: served {share:.1%} of the capacity, refused {len(refused)}")
    compute = (computing - before[0]) / (computed - before[1]) * BATCH
    print(f"a batch takes {service * 1e3:.0f} ms, of which {compute * 1e3:.0f} are computing")
    half, most_of = (percentile(served, part) * 1e3 for part in (0.5, 0.99))
    print(f"accepted: p50 {half:.0f} ms, p99 {most_of:.0f} ms (bound {bound * 1e3:.0f} ms)")
    soon = percentile(refused, 0.5)
    print(f"refused: p50 {soon * 1e3:.1f} ms, p99 {percentile(refused, 0.99) * 1e3:.1f} ms")
    others = Counter(answer.status for answer in answers if answer.status not in (200, 503))
    print(f"others: {dict(others) or 'none'}; not sent for want of a connection: {lost}")
    sent = len(answers) / arguments.seconds / most
    told = (
        f"{share:.1%} of the capacity at {sent:.2f} × it; p99 {most_of:.0f} ms (bound {bound * 1e3:.0f} ms), refused "
    )
    told += f"in {soon * 1e3:.1f} ms"
    met = share >= 0.9 and percentile(served, 0.99) <= bound and soon <= service and not others and sent >= 1.9
    return met, told


def part_batching(folder: Path, arguments: argparse.Namespace) -> Verdict:
    """Throughput, many clients."""
    train(folder, "picture")
    body = request("POST", "/models/picture", pictures(1)[0])
    found = {}
    for size in (1, BATCH):
        with serving(folder, "--max-batch", str(size), "--max-queue", "512") as (port, _):
            asyncio.run(capacity(port, body, 2 * BATCH, 2.0))
            found[size] = asyncio.run(capacity(port, body, 2 * BATCH, arguments.seconds))
            print(f"--max-batch {size}: {found[size]:.0f}/s")
    told = f"{found[BATCH]:.0f}/s in batches, {found[1]:.0f}/s one at a time: {found[BATCH] / found[1]:.2f} ×"
    return found[BATCH] >= 2 * found[1], told


def part_overhead(folder: Path, arguments: argparse.Namespace) -> Verdict:
    """One client, one picture at a time; the same picture in Python, in turns."""
    import weft

    train(folder, "picture")
    picture = pictures(1)[0]
    body, predictor = request("POST", "/models/picture", picture), weft.load(folder / "picture")
    http, direct = [], []
    with serving(folder) as (port, _):
        asyncio.run(one_by_one(port, body, 50))
        for _ in range(10):
            http += [answer.seconds for answer in asyncio.run(one_by_one(port, body, arguments.requests // 10))]
            for _ in range(arguments.requests // 10):
                started = time.perf_counter()
                predictor.predict_proba([picture])
                direct.append(time.perf_counter() - started)
    medians = [statistics.median(times) * 1e3 for times in (http, direct)]
    told = f"over HTTP {medians[0]:.2f} ms, in Python {medians[1]:.2f} ms: overhead {medians[0] - medians[1]:.2f} ms"
    return medians[0] - medians[1] <= 1.5, told


PARTS: dict[str, Any] = {
    "fuzz": part_fuzz,
    "schema": part_fuzz,
    "load": part_load,
    "batching": part_batching,
    "overhead": part_overhead,
}


def measured(part: str, folder: Path, arguments: argparse.Namespace) -> Verdict:
    """One part, with a server of its own."""
    seconds = arguments.seconds or (120.0 if part == "load" else 10.0)
    requests = arguments.requests or (2000 if part == "overhead" else 10_000)
    return PARTS[part](folder, argparse.Namespace(asked=part, seconds=seconds, requests=requests))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[*PARTS, "all"])
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--requests", type=int, default=None)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # or the server would be left behind
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for part in PARTS if arguments.part == "all" else (arguments.part,):
            started = time.perf_counter()
            found[part] = measured(part, Path(folder), arguments)
            print(f"{part} took {time.perf_counter() - started:.0f} s", flush=True)
    for part, (met, told) in found.items():
        print(f"{part:<9} {'met' if met else 'NOT MET':<8} {told}")
    sys.exit(not all(met for met, _ in found.values()))


if __name__ == "__main__":
    main()
