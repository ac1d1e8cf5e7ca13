"""`weft tune`: search the settings of a network on the validation split, or map how much it minds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from tyro.conf import OmitArgPrefixes, arg, configure

from weft.disk import claim, mark, require_output
from weft.errors import WeftError, WorkFailed
from weft.networks.registry import configured
from weft.studies.tune.space import USUAL, parse_space
from weft.terminal import how_many
from weft.training.config import RunConfig
from weft.training.storage.run_folder import name_for

COMMON = {
    "what": ("source", "model", "space", "map"),
    "how long": ("trials", "epochs", "steps"),
    "how": ("img_size", "flip", "seed"),
    "where": ("output", "jobs", "on", "storage"),
}


@configure(OmitArgPrefixes)
@dataclass(frozen=True)
class Arguments:
    """Tune a network: weft tune digits --model mixer_nano_p4_32 --trials 20

    Judged on the validation split alone; the test split stays unread by the choice. A kill loses nothing, and the
    same command goes on. Workers, here or elsewhere, share a search by its storage.
    """

    config: Annotated[RunConfig, arg(name="")] = field(default_factory=RunConfig)
    trials: int = 20
    """Trials of the whole search, over all workers and starts."""
    space: str = USUAL
    """Settings to search, of lr, weight_decay, batch_size, width, depth, patch_size, drop_rate, smoothing,
    crop_padding, flip, mixup."""
    jobs: int | None = None
    """Trials side by side; by default one, or on a cluster as many as it has cores for."""
    on: str | None = None
    """Where trials are computed: ray, or ray:HOST:PORT, for a Ray cluster that shares the output folder; by default on
    this machine."""
    storage: str | None = None
    """Address of the search, such as postgresql://…; by default a journal file in the output folder."""
    plan: bool = False
    """Run nothing: say what the trials would take and cost, and simulate the schedule."""
    machines: int = 1
    """For --plan: machines like this one."""
    map: bool = False
    """Instead: train --model A,B at every rate and width and draw the map."""
    output: Path | None = None
    """Folder of the search; by default tuning/SOURCE-MODEL."""


def run(arguments: Arguments) -> int:
    """Search, or map; then print what came out and write a page."""
    config = arguments.config
    if not config.source or not config.model:
        raise WeftError("say what to tune on what: weft tune SOURCE --model NAME")
    if arguments.trials < 1 or (arguments.jobs or 1) < 1:
        raise WeftError("--trials and --jobs must be at least 1")
    if arguments.plan:
        return tell_plan(arguments)
    folder = arguments.output or default_output(config)
    require_output(folder)
    return draw_map(config, folder, arguments.on) if arguments.map else search(arguments, folder)


def default_output(config: RunConfig) -> Path:
    return Path("tuning") / f"{name_for(config.source)}-{config.model.replace(',', '-')}"


def tell_plan(arguments: Arguments) -> int:
    """What the search would take, on so many machines."""
    if arguments.map or arguments.machines < 1:
        raise WeftError("--plan is of a search on at least one machine; leave out --map")
    from weft.studies.compare.dry_run import dry_search
    from weft.studies.engine.simulation import plan_lines

    dry = dry_search(arguments.config, arguments.trials, arguments.jobs)
    for line in plan_lines(f"a search on {arguments.config.source}", dry, arguments.machines):
        print(line)
    return 0


def search(arguments: Arguments, folder: Path) -> int:
    """Carry out a search and show its best settings."""
    space = parse_space(arguments.space)
    configured(arguments.config.model)
    from weft.report.tuning import caveat, render_search, settings_in_words
    from weft.studies.tune.driver import tune

    count, workers = arguments.trials, arguments.jobs or (1 if arguments.on is None else None)
    found = tune(arguments.config, space, count, folder, arguments.storage, workers, print, arguments.on)
    if found["best"] is None:
        write(folder, render_search(found))
        why = f": {found['reason']}" if found["reason"] else ""
        raise WorkFailed(f"no trial finished{why} (see {folder / 'log.txt'})")
    best = found["best"]
    winner = list(about_winner(folder / "trials" / f"trial-{best['number']:04d}"))
    write(folder, render_search(found, winner))
    print(
        f"best of {how_many(sum(found['states'].values()), 'trial')}: {best['value']:.4f} on the validation split with "
        f"{settings_in_words(best['settings'])}"
    )
    if found["importance"]:
        print(f"share of the result's variance that a setting explains, {caveat(found)}:")
    for name, share in found["importance"].items():
        print(f"  {name:<14}{'█' * round(30 * share)} {share:.0%}")
    for line in winner:
        print(line)
    print(f"report: {folder / 'tuning.html'}")
    if found["missing"]:
        raise WorkFailed(f"{found['missing']} of {count} trials are missing; the same command goes on")
    return 0


def about_winner(run: Path) -> Iterator[str]:
    """The score of the best trial on rows that had no part in the choice, and the command that trains it."""
    from weft.studies.results.reproduce import command_of
    from weft.training.storage.run_folder import RunFolder

    record = RunFolder(run).record() if (run / "record.json").is_file() else None
    if record is not None and record["status"] == "finished":
        metric = record["metric"]
        yield f"on the test split, which had no part in the choice: {metric} {record['metrics'][metric]:.4f}"
        yield f"train it anew: {command_of(record)}"
    yield f"the network: {run}"


def draw_map(config: RunConfig, folder: Path, on: str | None) -> int:
    """Carry out a rate × width map and print how much of it is good."""
    models = [name.strip() for name in config.model.split(",") if name.strip()]
    for model in models:
        configured(model)
    from weft.report.tuning import render_maps
    from weft.studies.engine.folder_lock import require_complete
    from weft.studies.tune.rate_width_map import map_rates

    found = map_rates(replace(config, model=models[0]), models, folder, print, on)
    write(folder, render_maps(found))
    for model, cells in found["maps"].items():
        print(f"{model} (down: width ×{', '.join(f'{w:g}' for w in found['widths'])}; across: rate)")
        for line in cells:
            print("  " + " ".join("    ✗" if value is None else f"{100 * value:5.1f}" for value in line))
    print(f"report: {folder / 'tuning.html'}")
    require_complete(folder, ("finished", "failed"))  # a cell that diverges is an answer
    return 0


def write(folder: Path, page: str) -> None:
    from weft.disk import write_bytes

    mark(folder)
    write_bytes(claim(folder / "tuning.html"), page.encode())
