"""`weft pretrain`: teach a text network the words of a corpus, or go on from where a run folder stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import OmitArgPrefixes, arg, configure

from weft.commands import running
from weft.training.pretraining.config import PretrainConfig


@configure(OmitArgPrefixes)
@dataclass(frozen=True)
class Arguments:
    """Pre-train a text network: weft pretrain pydocs --model gmlp_text_small --epochs 3 --output RUN

    Masked-language modelling, next-sentence prediction, or both, for any token network. A probe of 20 steps predicts
    time, memory and cost before the run starts. Ctrl-C or SIGTERM saves and prints the command that resumes.
    """

    config: Annotated[PretrainConfig, arg(name="")] = field(default_factory=PretrainConfig)
    output: Path | None = None
    """Folder of the run; by default a new one below runs/."""
    config_file: Annotated[Path | None, arg(name="config")] = None
    """Start from a YAML file, as --print-config writes it, or from the run.yaml of a run."""
    resume: Path | None = None
    """Continue the run in this folder."""
    processes: int = 1
    """Processes on this machine; more than one are started with torchrun, which restarts a rank that dies."""
    print_config: bool = False
    """Print the configuration as YAML and stop."""


def defaults(words: list[str]) -> Any:
    """What flags start from: a file, or the run that is to be resumed."""
    return running.starting_point(words, Arguments)


run = running.run
