"""Odd sources, run folders, arguments and environments: the real command on each, and what is demanded of it.

    python benchmarks/odd_inputs.py [--only GROUP] [--case WORDS] [--jobs N] [--json FILE] [--markdown]

A case passes when the command ends in time with an exit code that is documented for it, prints at most one line of
error, which begins with `weft: ` and tells what to do, prints no traceback, warning or code for terminals, leaves no
process behind, and touches no file but those that it may write. Ends with code 1 when one of them does not pass.
The cases are tables in `benchmarks/odd/`. Linux only: processes are found by their environment in /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from odd.case import Case, Ended
from odd.groups import GROUPS
from odd.place import trial


@dataclass(frozen=True)
class Result:
    """What came of a case."""

    group: str
    case: Case
    faults: list[str]
    ended: list[Ended]
    seconds: float


def attempt(group: str, case: Case) -> Result:
    """Run one case and tell what was wrong at once."""
    started = time.perf_counter()
    faults, ended = trial(case)
    result = Result(group, case, faults, ended, time.perf_counter() - started)
    if faults:
        print(f"✗ {group}: {case.name}: {'; '.join(faults)}", flush=True)
    return result


def selected(only: list[str] | None, words: list[str] | None) -> list[tuple[str, Case]]:
    """The cases of some groups whose names hold some words."""
    cases = [(group, case) for group, every in GROUPS.items() for case in every if not only or group in only]
    return [(group, case) for group, case in cases if not words or any(word in case.name for word in words)]


def as_json(result: Result) -> dict[str, object]:
    command = result.case.command if isinstance(result.case.command, str) else result.case.command.__doc__
    told = [{"code": ended.code, "out": ended.out[-2000:], "err": ended.err[-2000:]} for ended in result.ended]
    name = result.case.name
    return {
        "group": result.group, "name": name, "command": command, "faults": result.faults, "ended": told,
        "seconds": round(result.seconds, 2),
    }  # fmt: skip


def markdown(results: list[Result]) -> str:
    """A line a group, then the failures."""
    lines = ["| group | cases | passed | seconds |", "|---|---|---|---|"]
    groups = list(dict.fromkeys(result.group for result in results))
    for group in [*groups, "all"]:
        of = [result for result in results if group in (result.group, "all")]
        passed = sum(not result.faults for result in of)
        lines.append(f"| {group} | {len(of)} | {passed} | {sum(result.seconds for result in of):.0f} |")
    failed = [result for result in results if result.faults]
    lines += ["", *(f"- {result.group}, {result.case.name}: {'; '.join(result.faults)}" for result in failed)]
    return "\n".join(lines).rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--only", action="append", choices=GROUPS, help="a group; may be repeated")
    parser.add_argument("--case", action="append", help="cases whose names hold these words; may be repeated")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="cases side by side")
    parser.add_argument("--json", type=Path, help="write everything that was printed here")
    parser.add_argument("--markdown", action="store_true", help="print a table")
    arguments = parser.parse_args()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(lambda pair: attempt(*pair), selected(arguments.only, arguments.case)))
    if arguments.json:
        arguments.json.write_text(json.dumps([as_json(result) for result in results], indent=1, ensure_ascii=False))
    if arguments.markdown:
        print(markdown(results))
    passed = sum(not result.faults for result in results)
    print(f"{passed} of {len(results)} passed")
    sys.exit(0 if results and passed == len(results) else 1)


if __name__ == "__main__":
    main()
