"""`weft compare PATH` with no flags on real sets: when the first leaderboard is there, when it ends, what it answers.

    python benchmarks/compare_sets.py DATA [NAME …] [--time 15m]   # one after the other; docs/results/compare.json
    weft study draw                                                # docs/results/compare.md from that record

DATA is a folder with the sets below; Fashion-MNIST is Debian's dataset-fashion-mnist. Without names, all that have no
record: a set that has one is compared again only if it is named. On part of the cores, two of them at once perhaps:

    taskset -c 0 python benchmarks/compare_sets.py DATA cifar10 sst2 &
    taskset -c 1 python benchmarks/compare_sets.py DATA imdb mnli_subset
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FASHION = "/usr/share/datasets/fashion-mnist"
SETS = {
    "cifar10": "CIFAR-10",
    "oxford_pets_96": "Oxford Pets, 96 px",
    "sign_digits/images": "sign digits",
    "fashion_mnist": "Fashion-MNIST",
    "sst2": "SST-2",
    "rotten_tomatoes": "Rotten Tomatoes",
    "imdb": "IMDB",
    "mnli_subset": "MNLI, a part",
}
RESULTS = Path(__file__).parent.parent / "docs" / "results"
RECORD = {
    "study": "compare",
    "kind": "comparisons",
    "question": "What weft compare answers on real sets",
    "command": "weft compare PATH",
    "verdicts": [],
    "notes": ["No flags: fifteen minutes, from the command to the report. Made by benchmarks/compare_sets.py."],
}


def compare(source: Path, limit: str) -> dict[str, Any]:
    """One comparison, as a user would run it."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        words = [sys.executable, "-m", "weft", "compare", str(source), "--output", str(out)]
        words += ["--time", limit] if limit else []
        started, first = time.perf_counter(), None
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if first is None and line.startswith("so far: "):
                first = time.perf_counter() - started
        code = process.wait()
        took = time.perf_counter() - started
        shown = subprocess.run(
            [sys.executable, "-m", "weft", "leaderboard", str(out), "--json"],
            capture_output=True,
            text=True,
            check=True,
        )
    summary = json.loads(shown.stdout)
    rows = [{name: row[name] for name in ("name", "group", "score", "low", "high", "seeds", "steps", "parameters")}
            for row in summary["rows"]]  # fmt: skip
    return {
        "code": code,
        "seconds": round(took, 1),
        "first": first and round(first, 1),
        "processor": summary["environment"].get("processor", ""),
        "cores": summary["environment"].get("cores"),
        "commit": (summary["environment"].get("commit") or "")[:7],
        "overhead": next((note for note in summary["notes"] if "went into training" in note), ""),
        "budget": summary["budget"],
        "metric": summary["metric"],
        "rows": rows,
        "cautions": [*summary["cautions"], *summary["guesses"]],
        "verdicts": [verdict["sentence"] for verdict in summary["verdicts"]],
        "recommendation": summary["recommendation"],
    }


def known_sets(file: Path) -> dict[str, Any]:
    """The sets that have a record."""
    found: dict[str, Any] = json.loads(file.read_text())["sets"] if file.is_file() else {}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("names", nargs="*", help=", ".join(SETS))
    parser.add_argument("--time", default="")
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in SETS]:
        parser.error(f"there is no set {', '.join(unknown)}; choose from {', '.join(SETS)}")
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / "compare.json"
    for name in asked.names or [name for name in SETS if name not in known_sets(file)]:
        source = Path(FASHION) if name == "fashion_mnist" else asked.data / name
        found = {"title": SETS[name], **compare(source, asked.time)}
        known = known_sets(file) | {name: found}  # read again: another process may have added to it
        sets = {key: known[key] for key in SETS if key in known}
        new = file.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps({**RECORD, "sets": sets}, indent=1, ensure_ascii=False) + "\n")
        new.replace(file)


if __name__ == "__main__":
    main()
