"""How long comparisons and reports take: `python benchmarks/compare.py [--quick]`.

    python benchmarks/compare.py --against CHECKOUT [--rounds 3]   # digits alone, in turns with another commit's

Prints the table of benchmarks/RESULTS.md: wall time of `weft compare` on the embedded sources with start-up, its
overhead over the sum of its training steps, and time and size of a report of 200 runs × 1,000 points.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))


def comparison(source: str, folder: Path, checkout: Path | None = None) -> tuple[float, float, int]:
    """Wall seconds of the command, seconds inside training loops, and runs side by side."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "weft", "compare", source, "--output", str(folder)]
    place = os.environ | ({"PYTHONPATH": str((checkout / "src").resolve())} if checkout else {})
    said = subprocess.run(command, check=True, capture_output=True, text=True, env=place).stdout
    wall = time.perf_counter() - started
    records = [json.loads(path.read_text()) for path in folder.glob("runs/*/record.json")]
    side_by_side = (os.cpu_count() or 1) if "side by side (" in said else 1
    return wall, sum(record["wall_seconds"] for record in records), side_by_side


def report(folder: Path) -> tuple[float, int]:
    """Seconds and bytes of a report of 40 candidates × 5 seeds × 1,000 points."""
    from studies.fabricated import make_study
    from weft.studies.results.summary import draw_report

    make_study(folder, {f"mlp@{number}": 0.5 + number / 100 for number in range(40)}, seeds=5, points=1000)
    started = time.perf_counter()
    draw_report(folder)
    return time.perf_counter() - started, (folder / "report.html").stat().st_size


def against(other: Path, rounds: int) -> None:
    """The digits here and with the code of another checkout, in turns: medians of wall time, and their ratio."""
    places = {"here": Path(__file__).parents[1], "there": other}
    walls: dict[str, list[float]] = {name: [] for name in places}
    for turn in range(rounds):
        for name in sorted(places, reverse=turn % 2 == 1):
            with tempfile.TemporaryDirectory() as scratch:
                wall, steps, beside = comparison("digits", Path(scratch) / "out", places[name])
            walls[name].append(wall)
            print(f"{name}: {wall:.1f} s, {wall * beside / steps - 1:.0%} beyond training loops", flush=True)
    here, there = median(walls["here"]), median(walls["there"])
    print(f"medians of {rounds}: {here:.1f} s here, {there:.1f} s there, ratio {here / there:.2f}")


def main() -> None:
    if "--against" in sys.argv:
        rounds = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else 3
        against(Path(sys.argv[sys.argv.index("--against") + 1]), rounds)
        return
    before = os.getloadavg()[0]
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        for source in ("digits",) if "--quick" in sys.argv else ("digits", "pydocs"):
            wall, steps, beside = comparison(source, Path(scratch) / source)
            overhead = wall * beside / steps - 1
            lines.append(f"| `weft compare {source}`, start-up included | {wall:.0f} s | < 120 s | {yes(wall < 120)} |")
            what = f"the same, beyond its training loops ({beside} side by side)"
            lines.append(f"| {what} | {overhead:.0%} | < 5 % | {yes(overhead < 0.05)} |")
        seconds, size = report(Path(scratch) / "large")
    lines.append(f"| report of 200 runs × 1,000 points | {seconds:.1f} s | < 5 s | {yes(seconds < 5)} |")
    lines.append(f"| its size | {size / 1e6:.2f} MB | < 6 MB | {yes(size < 6e6)} |")
    print(f"{os.cpu_count()} cores, load average {before:.1f} before and {os.getloadavg()[0]:.1f} after\n")
    print("| what | measured | wanted | met |\n|---|---|---|---|\n" + "\n".join(lines))


def yes(met: bool) -> str:
    return "yes" if met else "no"


if __name__ == "__main__":
    main()
