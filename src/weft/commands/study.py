"""`weft study`: the experiments by name, run so that a kill loses nothing and shown from their records."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from weft.disk import require_output
from weft.errors import WeftError, nearest
from weft.studies.experiments.registry import PRETRAINING, STUDIES, Entry, Request, find
from weft.training.config import seconds
from weft.training.storage.run_folder import name_for

USUAL = ("studies", "comparisons", "runs")  # folders that the commands write to
LOCAL = ("e1", "e2")  # studies of this machine, or of none


@dataclass(frozen=True)
class Arguments:
    """List, run or show a study: weft study list, weft study run e4 CORPUS --scale smoke, weft study show e4

    `record` keeps a study's results as a small file, `draw` makes pages of all such files in a folder, and of what the
    recipes have reached.
    """

    action: Positional[Literal["list", "run", "show", "record", "draw"]] = "list"
    """What to do."""
    name: Positional[str | None] = None
    """Name of the study."""
    source: Positional[str | None] = None
    """Source that it runs on; by default digits, or pydocs for the experiments on text."""
    output: Path | None = None
    """Folder of the study; by default studies/NAME-SOURCE, with the scale behind it where there is one."""
    seeds: int | None = None
    """Runs of each candidate, or timings of each row of e2; by default the study's own number."""
    steps: int | None = None
    """Batches of each run (of each pre-training run in e3 to e8); by default the study's own number."""
    scale: str = "cpu"
    """For e2 to e10: smoke (a minute), cpu (half an hour, or at most two, on two cores) or paper (the published shapes;
    e2 has them at cpu)."""
    pretrain_time: str | None = None
    """For e3 to e8: time of a pre-training run, such as 7m, on the mean over the rows, instead of --steps."""
    tasks: tuple[str, ...] = ()
    """For e3 and e5 to e8: sources to fine-tune on, such as folders of photographs, or of SST-2 and MNLI; by default
    the source itself, if labelled."""
    encoder: str | None = None
    """For e6 and e7: folder of a trained encoder; by default a small BERT is pre-trained on the corpus."""
    on: str | None = None
    """Where runs are computed: ray, or ray:HOST:PORT, for a Ray cluster that shares the output folder; by default on
    this machine."""
    reuse: tuple[str, ...] = ()
    """Folders of studies, comparisons or runs: finished runs there that were asked for the same are taken over; by
    default those in studies/, comparisons/ and runs/, or with --output those in folders beside it."""
    plan: bool = False
    """Run nothing: say how many runs there are, what they would take and cost, and simulate the schedule."""
    machines: int = 1
    """For --plan: machines like this one."""
    price_per_hour: float | None = None
    """For --plan: price of an hour of a machine."""
    results: Path = Path("docs/results")
    """For record and draw: folder of the records and their pages."""


def run(arguments: Arguments) -> int:
    """Do what was asked."""
    if arguments.action == "list":
        for name, entry in STUDIES.items():
            print(f"{name:<6}{entry.title}")
        return 0
    if arguments.action == "draw":
        from weft.report.results.drawing import draw_all
        from weft.studies.experiments.records import recipes_record

        for path in draw_all(arguments.results, {"recipes": recipes_record()}):
            print(path)
        return 0
    if arguments.name is None:
        raise WeftError(f"say which study: weft study {arguments.action} NAME ({', '.join(STUDIES)})")
    if any(number is not None and number < 1 for number in (arguments.seeds, arguments.steps)):
        raise WeftError("--seeds and --steps must be at least 1")
    entry = find(arguments.name)
    check_flags(arguments, entry)
    if arguments.action == "show":
        entry.show(existing(arguments, entry))
        return 0
    if arguments.action == "record":
        from weft.studies.experiments.records import keep_record

        print(keep_record(str(arguments.name).lower(), arguments.scale, existing(arguments, entry), arguments.results))
        return 0
    request = requested(arguments, entry)
    if arguments.plan:
        return tell_plan(arguments, entry, request)
    require_output(request.folder)
    entry.run(request)
    return 0


def requested(arguments: Arguments, entry: Entry) -> Request:
    """The request that the flags make."""
    return Request(
        folder_of(arguments, entry),
        arguments.source or entry.source,
        arguments.seeds,
        arguments.steps,
        "weft " + shlex.join(sys.argv[1:]),
        say,
        arguments.scale,
        arguments.pretrain_time,
        arguments.tasks,
        arguments.encoder,
        arguments.on,
        arguments.reuse or (USUAL if arguments.output is None else (str(arguments.output.resolve().parent),)),
        arguments.price_per_hour,
    )


def tell_plan(arguments: Arguments, entry: Entry, request: Request) -> int:
    """What a study would take, on so many machines."""
    if entry.plan is None:
        raise WeftError(f"{arguments.name} has no plan; those of {planned()} have one")
    if arguments.machines < 1 or (arguments.price_per_hour or 0) < 0:
        raise WeftError("--machines must be at least 1, and --price-per-hour no less than 0")
    from weft.studies.engine.simulation import plan_lines

    for line in plan_lines(f"{arguments.name} at the scale {arguments.scale}", entry.plan(request), arguments.machines):
        print(line)
    return 0


def planned() -> str:
    return ", ".join(name for name, entry in STUDIES.items() if entry.plan is not None)


def check_flags(arguments: Arguments, entry: Entry) -> None:
    """Refuse what contradicts itself, or belongs to other studies."""
    if arguments.steps is not None and arguments.pretrain_time is not None:
        raise WeftError("--steps and --pretrain-time contradict each other; give one of them")
    if arguments.on is not None and arguments.name in LOCAL:
        raise WeftError(f"{arguments.name} is computed on this machine alone; leave out --on")
    for name in PRETRAINING:
        if getattr(arguments, name) and name not in entry.flags:
            users = ", ".join(study for study, other in STUDIES.items() if name in other.flags)
            raise WeftError(f"--{name.replace('_', '-')} is for {users}; {arguments.name} does not know it")
    if entry.scales and arguments.scale not in entry.scales:
        raise WeftError(
            f"{arguments.name} has no scale {arguments.scale!r}; {nearest(arguments.scale, entry.scales)} "
            f"there are {', '.join(entry.scales)}"
        )
    if not entry.source and (arguments.source or arguments.steps):
        raise WeftError(f"{arguments.name} runs on no source, but on networks; leave out the source and --steps")
    if arguments.pretrain_time is not None:
        seconds(arguments.pretrain_time)


def folder_of(arguments: Arguments, entry: Entry) -> Path:
    """The folder of a study."""
    source = arguments.source or entry.source
    parts = [
        str(arguments.name).lower(),
        *([name_for(source)] if source else []),
        *([arguments.scale] if entry.scales else []),
    ]
    return arguments.output or Path("studies") / "-".join(parts)


def existing(arguments: Arguments, entry: Entry) -> Path:
    """The folder to show: the one asked for, or without a source the study's newest."""
    folder = folder_of(arguments, entry)
    if folder.is_dir() or arguments.name == "e1":
        return folder
    made = sorted(Path("studies").glob(f"{str(arguments.name).lower()}-*"), key=lambda path: path.stat().st_mtime)
    if made and arguments.source is None and arguments.output is None:
        return made[-1]
    raise WeftError(f"{folder} does not exist; `weft study run {arguments.name}` makes it")


def say(sentence: str) -> None:
    print(sentence, flush=True)
