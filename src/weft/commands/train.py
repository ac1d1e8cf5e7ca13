"""`weft train`: one run, from a source and the name of a network, or on from where a run folder stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import OmitArgPrefixes, arg, configure

from weft.commands import running
from weft.training.config import RunConfig

COMMON = {
    "what": ("source", "model", "network", "recipe"),
    "how long": ("epochs", "time", "patience"),
    "how": ("batch_size", "lr", "img_size", "flip", "seed"),
    "where": ("output", "resume", "device"),
}


@configure(OmitArgPrefixes)
@dataclass(frozen=True)
class Arguments(running.Flags):
    """Train a network: weft train digits --model mlp --epochs 5 --output RUN

    What is not given follows the data, and each decision is printed. A probe predicts time, memory and cost before the
    run starts. Ctrl-C or SIGTERM saves and prints the command that resumes.
    """

    config: Annotated[RunConfig, arg(name="")] = field(default_factory=RunConfig)
    output: Path | None = None
    """Folder of the run; by default a new one below runs/."""
    recipe: str | None = None
    """Start from a known-good configuration (`weft recipes` lists them); other flags change it."""


def defaults(words: list[str]) -> Any:
    """What flags start from: a recipe, a file, or the run that is to be resumed."""
    return running.starting_point(words, Arguments)


run = running.run
