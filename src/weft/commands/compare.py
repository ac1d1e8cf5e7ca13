"""`weft compare`: the families side by side on the same data at equal size or time, with verdicts and a report."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import OmitArgPrefixes, arg, configure

from weft.api import default_comparison, run_comparison
from weft.errors import WeftError
from weft.studies.compare.config import ComparisonConfig

COMMON = {
    "what": ("source", "target", "models", "match", "amount", "runs"),
    "how long": ("time", "epochs", "seeds", "trials"),
    "how": ("img_size", "flip", "batch_size"),
    "where": ("output", "jobs"),
}


@configure(OmitArgPrefixes)
@dataclass(frozen=True)
class Arguments:
    """Compare networks on a source: weft compare digits, or weft compare FOLDER --time 20m

    Every candidate has the same size or training time and the same number of trials; the controls and a classical
    baseline are in by default. Ends with a leaderboard and report.html. The same command goes on where it was
    interrupted.
    """

    config: Annotated[ComparisonConfig, arg(name="")] = field(default_factory=ComparisonConfig)
    output: Path | None = None
    """Folder of the comparison; by default one in comparisons/ that is the source's own. It goes on where it ended."""
    runs: tuple[Path, Path] | None = None
    """Instead: two finished runs, whose networks are compared on the same examples (McNemar's test)."""
    plan: bool = False
    """Run nothing: say how many runs there are, what they would take and cost, and simulate the schedule."""
    machines: int = 1
    """For --plan: machines like this one."""


def run(arguments: Arguments) -> int:
    """Carry out the comparison, or go on with it; then show what came out."""
    if arguments.runs is not None:
        from weft.studies.compare.mcnemar import compare_two

        print(compare_two(*arguments.runs))
        return 0
    if arguments.plan:
        return tell_plan(arguments)
    from weft.commands import main
    from weft.studies.experiments.registry import show_comparison

    folder = arguments.output or default_comparison(arguments.config.source)
    run_comparison(arguments.config, folder, "weft " + shlex.join(sys.argv[1:]), show_comparison, main.began)
    return 0


def tell_plan(arguments: Arguments) -> int:
    """What the comparison would take, on so many machines."""
    if arguments.machines < 1:
        raise WeftError("--machines must be at least 1")
    from weft.studies.compare.dry_run import dry_comparison
    from weft.studies.engine.simulation import plan_lines

    dry = dry_comparison(arguments.config, print)
    for line in plan_lines(f"a comparison on {arguments.config.source}", dry, arguments.machines):
        print(line)
    return 0
