"""`weft leaderboard`: draw a comparison, or any folder of runs, again from its records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from weft.errors import WeftError


@dataclass(frozen=True)
class Arguments:
    """Show what came out of the runs in a folder: weft leaderboard FOLDER"""

    folder: Positional[Path] = Path("runs")
    """Folder of a comparison, or one with run folders below it."""
    csv: bool = False
    """Print CSV, a line a candidate."""
    json: bool = False
    """Print JSON: rows, verdicts, differences, curves."""
    html: bool = False
    """Also write report.html into the folder again."""


def run(arguments: Arguments) -> int:
    """Print the leaderboard."""
    if arguments.csv and arguments.json:
        raise WeftError("give one of --csv and --json")
    from weft.report import table
    from weft.studies.results.load import collect
    from weft.studies.results.summary import draw_report, summarise
    from weft.terminal import for_data

    summary = draw_report(arguments.folder) if arguments.html else summarise(collect(arguments.folder))
    if arguments.csv or arguments.json:
        print(table.as_csv(summary) if arguments.csv else table.as_json(summary), end="", file=for_data())
    else:
        table.show(summary)
    return 0
