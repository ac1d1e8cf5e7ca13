"""Other people's networks, which weft's are held against: timm and transformers.

timm needs torchvision, whose wheel lacks two operators beside a CPU-only torch and then does not import. Nothing here
uses those operators, so it is enough to declare them. They are installed without their dependencies, which would
bring a CUDA torch: `pip install --no-deps -r tests/oracles.txt`.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from types import ModuleType

import pytest
import torch

MISSING_OPERATORS = ("nms", "qnms")
_kept: list[torch.library.Library] = []  # a library's operators live as long as it does


@cache
def declare_missing_operators() -> None:
    """Declare what torchvision registers a fake kernel for but does not bring; once a process."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in MISSING_OPERATORS:
        if not hasattr(torch.ops.torchvision, name):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _kept.append(library)


def import_timm() -> ModuleType:
    """timm, or a skipped test where it is not installed."""
    return _import("timm")


def import_transformers() -> ModuleType:
    """transformers, or a skipped test where it is not installed. It imports torchvision whenever that is there."""
    return _import("transformers")


def _import(name: str) -> ModuleType:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed: pip install --no-deps -r tests/oracles.txt", allow_module_level=True)
    declare_missing_operators()
    return importlib.import_module(name)
