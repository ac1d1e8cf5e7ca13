"""The kinds of run there are. Each brings a configuration, and the way from it to what a run works with.

A run's kind is kept in run.yaml, so that whatever opens a run folder (resuming, verifying, listing, studies) finds
the right classes. Nothing here loads torch; `gather` and `evaluate` are named and imported when they are needed.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from weft.errors import WeftError, nearest
from weft.training.config import RunConfig
from weft.training.finetuning.config import FinetuneConfig
from weft.training.pretraining.config import PretrainConfig

AnyConfig = RunConfig | FinetuneConfig | PretrainConfig


@dataclass(frozen=True)
class Kind:
    """One kind of run; functions are written `module:name`."""

    config: type[AnyConfig]
    gather: str
    """(config, folder or None, opened or None) -> Ingredients, see prepare.py"""
    evaluate: str
    """(run folder, source or None, split, batch size, encoder's folder or None) -> metrics"""


KINDS = {
    "train": Kind(
        RunConfig, "weft.training.run.inputs:gather_labelled", "weft.training.inference.evaluate:evaluate_classifier"
    ),
    "pretrain": Kind(
        PretrainConfig, "weft.training.pretraining.prepare:gather", "weft.training.pretraining.prepare:evaluate"
    ),
    "finetune": Kind(
        FinetuneConfig, "weft.training.finetuning.prepare:gather", "weft.training.finetuning.prepare:evaluate"
    ),
}


def config_class(kind: str, where: str = "") -> type[AnyConfig]:
    """The configuration of a kind of run."""
    if kind not in KINDS:
        named = reprlib.repr(kind)
        raise WeftError(f"{where}there is no kind of run {named}; {nearest(kind, KINDS)} upgrade weft if it is newer")
    return KINDS[kind].config


def function(name: str) -> Any:
    """What `module:name` names."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
