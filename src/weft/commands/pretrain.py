"""`weft pretrain`: teach a text network the words of a corpus, or go on from where a run folder stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import OmitArgPrefixes, arg, configure

from weft.commands import running
from weft.training.pretraining.config import PretrainConfig

COMMON = {
    "what": ("source", "model", "network", "next_sentence"),
    "how long": ("epochs", "time"),
    "how": ("vocab_size", "max_length", "batch_size", "lr", "seed"),
    "where": ("output", "resume", "device"),
}


@configure(OmitArgPrefixes)
@dataclass(frozen=True)
class Arguments(running.Flags):
    """Pre-train a text network: weft pretrain pydocs --model gmlp_text_small --epochs 3 --output RUN

    Masked-language modelling, next-sentence prediction, or both, for any token network. A probe of 20 steps predicts
    time, memory and cost before the run starts. Ctrl-C or SIGTERM saves and prints the command that resumes.
    """

    config: Annotated[PretrainConfig, arg(name="")] = field(default_factory=PretrainConfig)
    output: Path | None = None
    """Folder of the run; by default a new one below runs/."""


def defaults(words: list[str]) -> Any:
    """What flags start from: a file, or the run that is to be resumed."""
    return running.starting_point(words, Arguments)


run = running.run
