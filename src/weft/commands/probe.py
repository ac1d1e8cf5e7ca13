"""`weft probe`: simple classifiers on the features of trained networks, which tell in seconds which suits the data."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import OmitArgPrefixes, Positional, arg, configure

from weft.disk import claim, mark, require_output, write_bytes
from weft.errors import WeftError
from weft.studies.probe.config import ProbeConfig
from weft.training.storage.run_folder import name_for

COMMON = {
    "what": ("words", "shots", "draws"),
    "how": ("img_size", "max_length", "seed"),
    "where": ("output", "json"),
}


@configure(OmitArgPrefixes)
@dataclass(frozen=True)
class Arguments:
    """Probe trained networks: weft probe efficientnet_lite0 runs/resnet DATA

    Features of each network are computed once and kept. On them stand k nearest neighbours, ridge and logistic
    regression, and k-shot figures, the mean of several draws. The validation split decides, the test split is reported.
    """

    words: Positional[tuple[str, ...]] = ()
    """Trained networks (runs, folders or files of weights, names that pip brings, hub:NAME), and the source last."""
    config: Annotated[ProbeConfig, arg(name="")] = field(default_factory=ProbeConfig)
    output: Path | None = None
    """Folder for probe.html, probe.json and shots.svg; by default one below probes/ that is the source's own."""
    json: bool = False
    """Print JSON."""


def run(arguments: Arguments) -> int:
    """Print the table and write the page."""
    if len(arguments.words) < 2:
        raise WeftError("say what to probe, and on what: weft probe START … SOURCE")
    from weft.networks.weights.packages import PACKAGES

    *starts, source = arguments.words
    if source in PACKAGES and not Path(source).exists():
        raise WeftError(f"the source goes last, and {source} is a trained network: weft probe START … SOURCE")
    folder = arguments.output or Path("probes") / name_for(source)
    require_output(folder)
    from weft.studies.probe.probing import probe

    summary = probe(replace(arguments.config, starts=tuple(starts), source=source), say)
    write(folder, summary)
    show(summary, arguments.json)
    if not arguments.json:
        print(f"page: {folder / 'probe.html'}")
    return 0


def say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def write(folder: Path, summary: dict[str, Any]) -> None:
    """The page, the figures and the picture of the k-shot curves."""
    from weft.report import table
    from weft.report.probe import render_probe, shot_curves
    from weft.report.standalone import standalone

    folder.mkdir(parents=True, exist_ok=True)
    mark(folder)
    drawn = shot_curves(summary)
    files = {"probe.json": table.as_json(summary), "probe.html": render_probe(summary)}
    files |= {"shots.svg": standalone(drawn)} if drawn else {}
    for name, content in files.items():
        write_bytes(claim(folder / name), content.encode())
    if not drawn and (stale := folder / "shots.svg").exists():  # it would show other networks, or numbers of rows
        with suppress(WeftError):  # somebody else's
            claim(stale).unlink()


def show(summary: dict[str, Any], as_json: bool) -> None:
    from weft.report import table
    from weft.report.probe import probe_table
    from weft.terminal import console, for_data

    if as_json:
        print(table.as_json(summary), end="", file=for_data())
        return
    screen = console()
    screen.print(probe_table(summary, screen.width))
    for sentence in (summary["recommendation"], *summary["notes"]):
        screen.print(f"• {sentence}")
