"""The studies by name: what each asks, and how it is run and shown. Loads nothing heavy until a study is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from weft.errors import WeftError, WorkFailed, nearest

if TYPE_CHECKING:
    from weft.studies.engine.simulation import DryRun
    from weft.studies.experiments.text_tables.run_configs import Asked
    from weft.studies.experiments.transfer_tables.run_configs import Asked as TransferAsked

Say = Callable[[str], None]
Scale = TypeVar("Scale")
THREE = ("smoke", "cpu", "paper")
PRETRAINING = ("pretrain_time", "tasks", "encoder")


@dataclass(frozen=True)
class Request:
    """How a study is to be run; `pretrain_time`, `tasks` and `encoder` are for the studies that pre-train."""

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
    on: str | None = None
    """the cluster that runs are computed on"""
    reuse: tuple[str, ...] = ()
    """folders below which finished runs that were asked for the same are taken over"""
    price: float | None = None
    """of an hour of a machine, for a plan"""


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
    plan: Callable[[Request], DryRun] | None = None
    """what its runs would take, if it has any that can be planned"""


def find_scale(scales: Mapping[str, Scale], name: str) -> Scale:
    """One of a study's scales by name."""
    if name not in scales:
        raise WeftError(f"there is no scale {name!r}; {nearest(name, scales)} there are {', '.join(scales)}")
    return scales[name]


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


def run_e9(request: Request) -> None:
    """Several sizes of each family, the hybrid included."""
    from weft.studies.engine.folder_lock import concluded
    from weft.studies.experiments.families.e9_cost_front import run_front
    from weft.studies.experiments.families.scales import SCALES, question

    refuse_paper("e9", request, plan_e9)
    scale = find_scale(SCALES, request.scale)
    work = partial(run_front, question(request), scale, request.folder, request.command, request.say)
    concluded(request.folder, work, show_comparison)


def run_e10(request: Request) -> None:
    """Families and controls at equal multiply-adds."""
    from weft.studies.compare.comparison import compare
    from weft.studies.engine.folder_lock import concluded
    from weft.studies.experiments.families.scales import question

    refuse_paper("e10", request, plan_e10)
    work = partial(compare, question(request), request.folder, request.command, request.say)
    concluded(request.folder, work, show_comparison)


def refuse_paper(name: str, request: Request, plan: Callable[[Request], DryRun]) -> None:
    """The published shapes are for accelerators: say what they would need where there are none."""
    if request.scale != "paper" or request.on is not None:
        return
    import torch

    if not torch.cuda.is_available():
        hours = plan(request).hours
        raise WeftError(
            f"the paper scale of {name} is not run without a GPU: it needs about {hours:,.0f} hours of an A100 (--plan "
            "says more); use --scale cpu, or --on ray"
        )


def plan_e9(request: Request) -> DryRun:
    from weft.studies.experiments.plans import dry_e9

    return dry_e9(request)


def plan_e10(request: Request) -> DryRun:
    from weft.studies.experiments.plans import dry_e10

    return dry_e10(request)


def show_comparison(folder: Path) -> None:
    from weft.report.table import show
    from weft.studies.results.summary import draw_report

    show(draw_report(folder))
    print(f"report: {folder / 'report.html'}")


def run_e11(request: Request) -> None:
    from weft.studies.engine.folder_lock import concluded
    from weft.studies.experiments.e11_training_issues import SEEDS, STEPS, run_claims

    seeds, steps = request.seeds or SEEDS, request.steps or STEPS
    told = (request.command, request.say, request.on)
    work = partial(run_claims, request.folder, request.source, seeds, steps, *told)
    concluded(request.folder, work, show_e11)


def plan_e11(request: Request) -> DryRun:
    from weft.studies.experiments.e11_training_issues import SEEDS, STEPS
    from weft.studies.experiments.plans import dry_claims

    return dry_claims(request, request.seeds or SEEDS, request.steps or STEPS)


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
    from weft.studies.experiments.text_tables.run_experiment import run_experiment

    concluded(request.folder, partial(run_experiment, asked_of(name, request)), show_text_table)


def plan_text_table(name: str, request: Request) -> DryRun:
    from weft.studies.experiments.plans import dry_text_table

    return dry_text_table(asked_of(name, request), request.price)


def asked_of(name: str, request: Request) -> Asked:
    """What a table of the course work is asked for."""
    from weft.studies.experiments.text_tables.run_configs import Asked, at_scale, named_tasks
    from weft.studies.experiments.text_tables.scales import SCALES
    from weft.studies.experiments.text_tables.tables import EXPERIMENTS

    scale = at_scale(EXPERIMENTS[name], find_scale(SCALES, request.scale), request.steps, request.pretrain_time)
    return Asked(
        EXPERIMENTS[name],
        scale,
        request.source,
        request.folder,
        request.seeds or scale.seeds,
        request.command,
        request.say,
        named_tasks(EXPERIMENTS[name], request.source, request.tasks),
        request.encoder,
        request.on,
    )


def show_text_table(folder: Path) -> None:
    from weft.studies.experiments.text_tables.drawing import draw_table, print_table

    print_table(draw_table(folder))
    print(f"report: {folder / 'report.html'}")


def text_table(name: str, title: str) -> Entry:
    plan = partial(plan_text_table, name)
    return Entry(title, partial(run_text_table, name), show_text_table, "pydocs", PRETRAINING, THREE, plan)


def run_transfer_table(name: str, request: Request) -> None:
    """Table 3, and the figures on the size of the set to learn from, at a scale."""
    from weft.studies.engine.folder_lock import concluded
    from weft.studies.experiments.transfer_tables.run_transfer import run_transfer

    concluded(request.folder, partial(run_transfer, transfer_asked(name, request)), show_transfer_table)


def plan_transfer_table(name: str, request: Request) -> DryRun:
    from weft.studies.experiments.plans import dry_transfer

    return dry_transfer(transfer_asked(name, request), request.price)


def transfer_asked(name: str, request: Request) -> TransferAsked:
    """What a transfer study is asked for."""
    from dataclasses import replace

    from weft.studies.experiments.transfer_tables.design import named_tasks
    from weft.studies.experiments.transfer_tables.run_configs import Asked
    from weft.studies.experiments.transfer_tables.scales import SCALES

    scale = find_scale(SCALES, request.scale)
    if request.pretrain_time is not None:
        scale = replace(scale, steps=None, time={name: request.pretrain_time})
    elif request.steps is not None:
        scale = replace(scale, steps=request.steps)
    tasks, seeds = named_tasks(request.source, request.tasks), request.seeds or scale.seeds
    return Asked(name, scale, request.source, request.folder, seeds, request.command, request.say, tasks, request.on)


def show_transfer_table(folder: Path) -> None:
    from weft.studies.experiments.text_tables.drawing import print_table
    from weft.studies.experiments.transfer_tables.transfer_drawing import draw_transfer

    print_table(draw_transfer(folder))
    print(f"report: {folder / 'report.html'}")


def transfer_table(name: str, title: str) -> Entry:
    plan = partial(plan_transfer_table, name)
    return Entry(title, partial(run_transfer_table, name), show_transfer_table, "digits", PRETRAINING[:2], THREE, plan)


STUDIES: dict[str, Entry] = {
    "e1": Entry("specifications and parameter counts of Mixer and gMLP beside the published ones", run_e1, show_e1, ""),
    "e2": Entry(
        "tables 2 and 5: size, speed, memory and cost side by side", run_e2, show_e2, "", scales=("smoke", "cpu")
    ),
    "e3": transfer_table("e3", "table 3: pre-trained against from scratch; small images enlarged, no regularisation"),
    "e4": text_table("e4", "table 6: perplexity of the four gates at equal parameters"),
    "e5": text_table("e5", "table 7: BERT against gMLP as depth grows"),
    "e6": text_table("e6", "table 8: gMLP from scratch and on a trained encoder's embeddings; split, Toeplitz"),
    "e7": text_table("e7", "table 9: aMLP against gMLP and BERT"),
    "e8": transfer_table("e8", "accuracy after transfer and from few rows, as the set to learn from grows"),
    "e9": Entry(
        "figure 5: accuracy against the cost of training, several sizes of each family",
        run_e9,
        show_comparison,
        scales=THREE,
        plan=plan_e9,
    ),
    "e10": Entry(
        "is attention, is convolution, needed? the families at equal budget",
        run_e10,
        show_comparison,
        scales=THREE,
        plan=plan_e10,
    ),
    "e11": Entry("common training issues: one verdict a claim, minutes on digits", run_e11, show_e11, plan=plan_e11),
}


def find(name: str) -> Entry:
    """A study by name."""
    if name.lower() not in STUDIES:
        raise WeftError(f"there is no study {name!r}; {nearest(name, STUDIES)} there are {', '.join(STUDIES)}")
    return STUDIES[name.lower()]
