"""`weft recipes`: known-good configurations, with what to expect of them."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from tyro.conf import Positional

from weft.training.recipes import find, recipe
from weft.training.storage import yaml_file


@dataclass(frozen=True)
class Arguments:
    """List recipes, or show one: weft recipes [NAME]"""

    name: Positional[str | None] = None
    """Recipe to show in full."""


def run(arguments: Arguments) -> int:
    """Print the list, or one recipe's docstring and configuration."""
    found = find()
    if arguments.name is None:
        for name, function in found.items():
            print(f"{name:<24}{(inspect.getdoc(function) or '').splitlines()[0]}")
        return 0
    config = recipe(arguments.name)
    print(inspect.getdoc(found[arguments.name]))
    print()
    print(yaml_file.write(config), end="")
    return 0
