"""How long comparisons and reports take: `python benchmarks/compare.py [--quick]`.

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

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))


def comparison(source: str, folder: Path) -> tuple[float, float, int]:
    """Wall seconds of the command, seconds inside training loops, and runs side by side."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "weft", "compare", source, "--output", str(folder)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
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


def main() -> None:
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
