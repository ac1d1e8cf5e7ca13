"""The studies by name: what each asks, and how it is run and shown. Loads nothing heavy until a study is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from weft.errors import WeftError, WorkFailed, nearest

Say = Callable[[str], None]
THREE = ("smoke", "cpu", "paper")
PRETRAINING = ("pretrain_time", "tasks", "encoder")


@dataclass(frozen=True)
class Request:
    """How a study is to be run; the last four are for the studies that pre-train."""

    folder: Path
    source: str
    seeds: int | None
    steps: int | None
    command: str
    say: Say
    scale: str = "cpu"
    pretrain_time: str | None = None
    tasks: tuple[str, ...] = ()
    encoder: str | None = None


@dataclass(frozen=True)
class Entry:
    """A study: its question, and the functions that run it and show what is in its folder."""

    title: str
    run: Callable[[Request], None]
    show: Callable[[Path], None]
    source: str = "digits"
    """what it runs on unless told otherwise; empty where it runs on nothing"""
    flags: tuple[str, ...] = ()
    """which of pretrain_time, tasks and encoder it knows"""
    scales: tuple[str, ...] = ()
    """the scales that it has, if any"""


def run_e1(request: Request) -> None:
    show_e1(request.folder)


def show_e1(folder: Path) -> None:
    """Tables 1 and 4: computed, so there is nothing to keep."""
    from rich.table import Table

    from weft.studies.experiments.e1_counts import specifications
    from weft.terminal import console

    table = Table("network", "layers", "patch", "tokens", "channels", "hidden", "token hidden", "parameters",
                  "without head", "multiply-adds", "published, M", box=None)  # fmt: skip
    for spec in specifications():
        sizes = (spec.depth, spec.patch, spec.tokens, spec.channels, spec.hidden, spec.token_hidden or "–")
        counts = (f"{spec.parameters:,}", f"{spec.without_head:,}", f"{spec.macs:,}")
        published = "–" if spec.published is None else f"{spec.published:g} {'✓' if spec.agrees else '✗'}"
        table.add_row(spec.name, *map(str, sizes), *counts, published)
    console(width=160).print(table)


def run_e2(request: Request) -> None:
    """Tables 2 and 5: every row timed on one core."""
    from weft.studies.experiments.speed_tables.speed_study import run_speeds

    failure: WorkFailed | None = None
    try:
        run_speeds(request.folder, request.scale, request.seeds, request.command, request.say)
    except WorkFailed as error:  # what there is is shown all the same
        failure = error
    show_e2(request.folder)
    if failure is not None:
        raise failure


def show_e2(folder: Path) -> None:
    from weft.studies.experiments.speed_tables.speed_drawing import draw_speeds, print_speeds

    print_speeds(draw_speeds(folder))
    print(f"report: {folder / 'report.html'}")


def run_e10(request: Request) -> None:
    """Families at equal multiply-adds with five seeds."""
    from weft.studies.compare.comparison import compare
    from weft.studies.compare.config import ComparisonConfig
    from weft.studies.engine.folder_lock import concluded

    asked = ComparisonConfig(source=request.source, match="macs", seeds=request.seeds or 5, steps=request.steps)
    work = partial(compare, asked, request.folder, request.command, request.say)
    concluded(request.folder, work, show_comparison)


def show_comparison(folder: Path) -> None:
    from weft.report.table import show
    from weft.studies.results.summary import draw_report

    show(draw_report(folder))
    print(f"report: {folder / 'report.html'}")


def run_e11(request: Request) -> None:
    from weft.studies.engine.folder_lock import concluded
    from weft.studies.experiments.e11_training_issues import STEPS, run_claims

    seeds, steps = request.seeds or 5, request.steps or STEPS
    work = partial(run_claims, request.folder, request.source, seeds, steps, request.command, request.say)
    concluded(request.folder, work, show_e11)


def show_e11(folder: Path) -> None:
    """One verdict a claim, and the report with the runs behind them."""
    from weft.disk import claim, write_bytes
    from weft.report.page import render
    from weft.studies.engine.study import read_stored
    from weft.studies.experiments.e11_training_issues import FILE, JudgedClaim
    from weft.studies.results.load import collect
    from weft.studies.results.summary import summarise

    if not (folder / FILE).is_file():
        raise WeftError(f"{folder} has no verdicts yet; `weft study run e11` makes them, or goes on")
    verdicts = [
        asdict(verdict)
        for verdict in read_stored(folder / FILE, list[JudgedClaim], "`weft study run e11` judges again")
    ]
    own = {"heading": "Common training issues", "verdicts": verdicts, "recommendation": ""}
    summary: dict[str, Any] = summarise(collect(folder)) | own
    write_bytes(claim(folder / "report.html"), render(summary).encode())
    for verdict in verdicts:
        print(verdict["sentence"])
    print(f"report: {folder / 'report.html'}")


def run_text_table(name: str, request: Request) -> None:
    """Tables 6 to 9 of the course work at a scale."""
    from weft.studies.engine.folder_lock import concluded
    from weft.studies.experiments.text_tables.run_configs import Asked, at_scale, named_tasks
    from weft.studies.experiments.text_tables.run_experiment import run_experiment
    from weft.studies.experiments.text_tables.scales import find_scale
    from weft.studies.experiments.text_tables.tables import EXPERIMENTS

    scale = at_scale(EXPERIMENTS[name], find_scale(request.scale), request.steps, request.pretrain_time)
    asked = Asked(
        EXPERIMENTS[name],
        scale,
        request.source,
        request.folder,
        request.seeds or scale.seeds,
        request.command,
        request.say,
        named_tasks(EXPERIMENTS[name], request.source, request.tasks),
        request.encoder,
    )
    concluded(request.folder, partial(run_experiment, asked), show_text_table)


def show_text_table(folder: Path) -> None:
    from weft.studies.experiments.text_tables.drawing import draw_table, print_table

    print_table(draw_table(folder))
    print(f"report: {folder / 'report.html'}")


def text_table(name: str, title: str) -> Entry:
    return Entry(title, partial(run_text_table, name), show_text_table, "pydocs", PRETRAINING, THREE)


def run_transfer_table(name: str, request: Request) -> None:
    """Table 3, and the figures on the size of the set to learn from, at a scale."""
    from dataclasses import replace

    from weft.studies.engine.folder_lock import concluded
    from weft.studies.experiments.transfer_tables.design import named_tasks
    from weft.studies.experiments.transfer_tables.run_configs import Asked
    from weft.studies.experiments.transfer_tables.run_transfer import run_transfer
    from weft.studies.experiments.transfer_tables.scales import find_scale

    scale = find_scale(request.scale)
    if request.pretrain_time is not None:
        scale = replace(scale, steps=None, time={name: request.pretrain_time})
    elif request.steps is not None:
        scale = replace(scale, steps=request.steps)
    tasks, seeds = named_tasks(request.source, request.tasks), request.seeds or scale.seeds
    asked = Asked(name, scale, request.source, request.folder, seeds, request.command, request.say, tasks)
    concluded(request.folder, partial(run_transfer, asked), show_transfer_table)


def show_transfer_table(folder: Path) -> None:
    from weft.studies.experiments.text_tables.drawing import print_table
    from weft.studies.experiments.transfer_tables.transfer_drawing import draw_transfer

    print_table(draw_transfer(folder))
    print(f"report: {folder / 'report.html'}")


def transfer_table(name: str, title: str) -> Entry:
    return Entry(title, partial(run_transfer_table, name), show_transfer_table, "digits", PRETRAINING[:2], THREE)


STUDIES: dict[str, Entry] = {
    "e1": Entry("specifications and parameter counts of Mixer and gMLP beside the published ones", run_e1, show_e1),
    "e2": Entry(
        "tables 2 and 5: size, speed, memory and cost side by side", run_e2, show_e2, "", scales=("smoke", "cpu")
    ),
    "e3": transfer_table("e3", "table 3: pre-trained against from scratch; small images enlarged, no regularisation"),
    "e4": text_table("e4", "table 6: perplexity of the four gates at equal parameters"),
    "e5": text_table("e5", "table 7: BERT against gMLP as depth grows"),
    "e6": text_table("e6", "table 8: gMLP from scratch and on a trained encoder's embeddings; split, Toeplitz"),
    "e7": text_table("e7", "table 9: aMLP against gMLP and BERT"),
    "e8": transfer_table("e8", "accuracy after transfer and from few rows, as the set to learn from grows"),
    "e10": Entry("is attention, is convolution, needed? the families at equal budget", run_e10, show_comparison),
    "e11": Entry("common training issues: one verdict a claim, minutes on digits", run_e11, show_e11),
}


def find(name: str) -> Entry:
    """A study by name."""
    if name.lower() not in STUDIES:
        raise WeftError(f"there is no study {name!r}; {nearest(name, STUDIES)} there are {', '.join(STUDIES)}")
    return STUDIES[name.lower()]
