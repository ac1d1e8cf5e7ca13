"""`weft finetune`: a trained network learns the targets of a source; alone, for several seeds, or seven heads of it."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import OmitArgPrefixes, Positional, arg, configure

from weft.commands import running
from weft.disk import require_output
from weft.errors import WeftError
from weft.training.finetuning.config import FinetuneConfig, name_of
from weft.training.storage.run_folder import name_for

ALL = "all"  # --model all: every head


COMMON = {
    "what": ("start", "source", "model", "frozen"),
    "how long": ("epochs", "time", "patience"),
    "how": ("batch_size", "lr", "img_size", "max_length", "seeds"),
    "where": ("output", "resume", "device"),
}


@configure(OmitArgPrefixes)
@dataclass(frozen=True)
class Arguments(running.Flags):
    """Fine-tune a trained network: weft finetune RUN_OR_FOLDER DATA --epochs 3 --output RUN

    Starts from a run of weft, a name that pip brings trained (efficientnet_lite0), a folder or file of weights of timm,
    torchvision, Google or Hugging Face, or hub:NAME. --frozen trains a linear probe on features that are computed once
    and cached; for text --frozen --model gmlp_text_tiny puts a network on the encoder's embeddings, and --model all
    seven of them with a table. --seeds 3 repeats with other seeds and prints the
    mean and the spread; the same command goes on after a kill.
    """

    start: Positional[str] = ""
    """Run folder, folder or file of weights, hub:NAME, or the name of a network that pip brings trained."""
    config: Annotated[FinetuneConfig, arg(name="")] = field(default_factory=FinetuneConfig)
    output: Path | None = None
    """Folder of the run, or of all runs; by default a new one below runs/."""
    seeds: int = 1
    """Runs, with seeds from --seed on."""


def defaults(words: list[str]) -> Any:
    """What flags start from: a file, or the run that is to be resumed."""
    return running.starting_point(words, Arguments)


def run(arguments: Arguments) -> int:
    """One run, or as many as there are heads and seeds."""
    if arguments.seeds < 1:
        raise WeftError("--seeds must be at least 1")
    if arguments.start:
        arguments = replace(arguments, config=replace(arguments.config, start=arguments.start))
    if arguments.resume is None and not arguments.print_config and not arguments.config.start:
        raise WeftError("say what to start from: weft finetune RUN_OR_FOLDER DATA")
    if arguments.print_config or (arguments.seeds == 1 and arguments.config.model != ALL):
        named = replace(arguments.config, model=name_of(arguments.config))
        return running.run(replace(arguments, config=named))
    return several(arguments)


def several(arguments: Arguments) -> int:
    """Heads and seeds as a study, whose table is printed."""
    if arguments.resume is not None or arguments.processes > 1:
        raise WeftError("several runs go on with the command that began them; leave out --resume and --processes")
    config = arguments.config
    if config.model == ALL and not config.thawing.frozen:
        raise WeftError("--model all puts seven networks on a frozen encoder; add --frozen")
    from weft.studies.engine.folder_lock import require_complete
    from weft.studies.head_comparison import finetune_all, show_table

    name = f"finetune-{name_for(config.source)}-{name_for(config.start)}"
    heads = config.model == ALL
    folder = arguments.output or Path("runs") / (name + ("-heads" if heads else ""))
    require_output(folder)
    command = "weft " + shlex.join(sys.argv[1:])
    finetune_all(replace(config, model="" if heads else config.model), heads, arguments.seeds, folder, command)
    show_table(folder)
    require_complete(folder)
    return 0
