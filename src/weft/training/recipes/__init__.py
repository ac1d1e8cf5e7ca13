"""Recipes: functions that return a configuration, their docstrings stating what to expect. One file a source.

`weft train --recipe digits/mixer` starts from one; flags change it. Nothing here loads torch.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from weft.errors import WeftError, nearest
from weft.training.config import RunConfig

SOURCES = ("digits", "cifar10", "pydocs", "sst2")

Recipe = Callable[[], RunConfig]


def find() -> dict[str, Recipe]:
    """All recipes by name, such as `digits/mixer`."""
    found: dict[str, Recipe] = {}
    for source in SOURCES:
        module = import_module(f"{__name__}.{source}")
        found |= {f"{source}/{name}": getattr(module, name) for name in module.RECIPES}
    return found


def recipe(name: str) -> RunConfig:
    """The configuration of a recipe."""
    found = find()
    if name not in found:
        raise WeftError(f"there is no recipe {name!r}; {nearest(name, found)} `weft recipes` lists all")
    return found[name]()
