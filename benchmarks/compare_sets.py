"""`weft compare PATH` with no flags on real sets: when the first leaderboard is there, when it ends, what it answers.

    python benchmarks/compare_sets.py run DATA NAME … [--time 15m]     # one after the other; records go to docs/results
    python benchmarks/compare_sets.py draw                             # docs/results/compare.md from the records

DATA is a folder with the sets below. A set that has a record is compared again only if it is named.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SETS = {
    "cifar10": "CIFAR-10",
    "oxford_pets_96": "Oxford Pets, 96 px",
    "sign_digits/images": "sign digits",
    "sst2": "SST-2",
    "rotten_tomatoes": "Rotten Tomatoes",
    "imdb": "IMDB",
    "mnli_subset": "MNLI, a part",
}
RESULTS = Path(__file__).parent.parent / "docs" / "results"


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
        "budget": summary["budget"],
        "metric": summary["metric"],
        "rows": rows,
        "verdicts": [verdict["sentence"] for verdict in summary["verdicts"]],
        "recommendation": summary["recommendation"],
    }


def draw(records: dict[str, Any]) -> str:
    """The page."""
    lines = [
        "# What `weft compare` answers on real sets",
        "",
        "`weft compare PATH` with no flags: fifteen minutes, from the command to the report. Made by",
        "`python benchmarks/compare_sets.py run DATA NAME …` and drawn from the records beside this page.",
        "",
        "| set | took | first leaderboard | the best by score | of networks from scratch | classical | advice |",
        "|---|---|---|---|---|---|---|",
    ]
    for key, title in SETS.items():
        if (record := records.get(key)) is None:
            continue
        scratch = [
            r for r in record["rows"] if "+" not in r["name"] and r["group"] != "control" and r["score"] is not None
        ]
        classical = [r for r in record["rows"] if r["group"] == "classical" and r["score"] is not None]
        best = max((r for r in record["rows"] if r["score"] is not None), key=lambda r: r["score"])
        cells = [told(best), told(max(scratch, key=lambda r: r["score"])), told(classical[0]) if classical else "–"]
        minutes = f"{record['seconds'] / 60:.1f} min"
        advice = record["recommendation"].partition(":")[0]
        lines.append(
            f"| {title} | {minutes} | {(record['first'] or 0) / 60:.1f} min | {' | '.join(cells)} | {advice} |"
        )
    for key, title in SETS.items():
        if record := records.get(key):
            lines += ["", f"## {title}", "", f"{record['budget']}; {record['processor']}.", ""]
            lines += ["| candidate | score, 95 % interval | seeds | steps | parameters |", "|---|---|---|---|---|"]
            for r in record["rows"]:
                counts = f"{r['steps'] or 0:,.0f} | {r['parameters'] or 0:,.0f}"
                lines.append(f"| {r['name']} | {told(r, name=False)} | {r['seeds']} | {counts} |")
            lines += ["", *(f"- {sentence}" for sentence in record["verdicts"]), f"- {record['recommendation']}"]
    return "\n".join(lines) + "\n"


def told(row: dict[str, Any], name: bool = True) -> str:
    if row["score"] is None:
        return "failed"
    span = f"{100 * row['score']:.1f} % ({100 * row['low']:.1f}…{100 * row['high']:.1f})"
    return f"{row['name']} {span}" if name else span


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "draw"))
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--time", default="")
    asked = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / "compare.json"
    records = json.loads(file.read_text()) if file.is_file() else {}
    for name in asked.names:
        records[name] = compare(asked.data / name, asked.time)
        file.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n")
    if records:
        (RESULTS / "compare.md").write_text(draw(records))


if __name__ == "__main__":
    main()
