"""`weft inspect`: look inside a network through one lens, or through all of them onto one page."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union

from tyro.conf import CascadeSubcommandArgs, OmitArgPrefixes, Positional, arg, configure, subcommand

from weft.insight.options import AllOptions
from weft.insight.registry import LENSES, look, look_through_all
from weft.training.config import Overrides

if TYPE_CHECKING:
    from weft.insight.finding import Finding
    from weft.insight.subject import Subject

OPTIONS = {**{name: lens.options for name, lens in LENSES.items()}, "all": AllOptions}
NAMES = {options: name for name, options in OPTIONS.items()}
Choice: Any = Union[  # noqa: UP007 - the members are only known when the lenses are
    tuple(
        Annotated[options, subcommand(name, description=str(options.__doc__).splitlines()[0])]
        for name, options in OPTIONS.items()
    )
]


@configure(CascadeSubcommandArgs, OmitArgPrefixes)
@dataclass(frozen=True)
class Arguments:
    """Look inside a network: weft inspect RUN field, or weft inspect vit_nano_p4_32 field --source digits

    Writes pictures, a table, a record and a page into --output, and prints the table with a sentence on what it says.
    `weft inspect RUN LENS --help` has the options of a lens.
    """

    subject: Positional[Annotated[str, arg(metavar="RUN|NAME")]]
    """Run folder, or the name of an untrained network."""
    lens: Choice
    """What to look at."""
    output: Path | None = None
    """Folder for what is found; by default RUN/insight, or NAME-insight."""
    source: str | None = None
    """Source to show the network; by default what a run was trained on."""
    split: str = "test"
    """Split of that source."""
    network: Overrides = field(default_factory=dict)
    """Changes to a named network's configuration, as pairs: --network depth=4"""
    encoder: Path | None = None
    """Where the frozen encoder lies that a run's network stands on, if it is not in the run's folder."""


def run(arguments: Arguments) -> int:
    """Look, show and save."""
    from weft.insight.subject import open_subject

    subject = open_subject(arguments.subject, arguments.source, arguments.split, arguments.network, arguments.encoder)
    folder = arguments.output or (subject.folder / "insight" if subject.folder else Path(f"{subject.name}-insight"))
    name = NAMES[type(arguments.lens)]
    if name == "all":
        return inspect_all(subject, folder)
    finding = look(subject, name, arguments.lens)
    keep(finding, folder)
    write_page(subject, [finding], folder / f"{name}.html")
    return 0


def keep(finding: Finding, folder: Path) -> None:
    """Save and show one finding."""
    written = finding.save(folder)
    finding.show()
    print(f"{folder}: {', '.join(path.name for path in written)}")


def inspect_all(subject: Subject, folder: Path) -> int:
    """All lenses: every finding on disk, and the page."""
    found = []
    for finding in look_through_all(subject):
        found.append(finding)
        if isinstance(finding, str):
            print(f"– {finding}")
            continue
        finding.save(folder)
        print(f"{finding.lens}: {finding.sentence}", flush=True)
    write_page(subject, found, folder / "index.html")
    return 0


def write_page(subject: Subject, found: list[Finding | str], path: Path) -> None:
    """One HTML file with what was found."""
    from weft.disk import claim, write_bytes
    from weft.insight.page import render

    write_bytes(claim(path, "choose another --output"), render(subject, found).encode())
    print(f"wrote {path}")
