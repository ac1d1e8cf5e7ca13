"""The kinds of run there are, by the name that run.yaml keeps, each with its configuration. Nothing here loads torch.

Whatever opens a run folder (resuming, verifying, listing, studies) finds the right class here; `run/inputs.py` opens
what a run of each kind works with, `inference/evaluate.py` evaluates one.
"""

from __future__ import annotations

import reprlib

from weft.errors import WeftError, nearest
from weft.training.config import RunConfig
from weft.training.finetuning.config import FinetuneConfig
from weft.training.pretraining.config import PretrainConfig

AnyConfig = RunConfig | FinetuneConfig | PretrainConfig


KINDS: dict[str, type[AnyConfig]] = {"train": RunConfig, "pretrain": PretrainConfig, "finetune": FinetuneConfig}


def config_class(kind: str, where: str = "") -> type[AnyConfig]:
    """The configuration of a kind of run."""
    if kind not in KINDS:
        named = reprlib.repr(kind)
        raise WeftError(f"{where}there is no kind of run {named}; {nearest(kind, KINDS)} upgrade weft if it is newer")
    return KINDS[kind]
