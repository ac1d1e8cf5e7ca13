"""Functions of the user's own, named `package.module:function`: a name survives worker processes and resuming."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from weft.errors import WeftError, nearest


@lru_cache
def function(name: str, what: str) -> Callable[..., Any]:
    """What `package.module:function` names, also where the module lies in the current folder; `what` is for sentences.

    The module is imported once a process: a change to it takes effect in the next one.
    """
    module_name, colon, attribute = name.partition(":")
    if not colon or not module_name or not attribute:
        raise WeftError(f"{what} {name!r} is no import string; write package.module:function")
    try:
        with current_folder():
            module = import_module(module_name)
    except Exception as error:  # a user's module may raise anything
        raise WeftError(f"{what} {name}: {module_name} cannot be imported ({type(error).__name__}: {error})") from error
    found = getattr(module, attribute, None)
    if found is None:
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise WeftError(
            f"{what} {name}: {module_name} has no {attribute}; {nearest(attribute, known) or 'see its code'}"
        )
    if not callable(found):
        raise WeftError(f"{what} {name} is a {type(found).__name__}; a function is needed")
    return found


@contextmanager
def current_folder() -> Iterator[None]:
    """Modules in the current folder can be imported, as they can in a script that lies there."""
    here = str(Path.cwd())
    if here in sys.path or "" in sys.path:
        yield
        return
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.remove(here)


def name_of(given: Callable[..., Any], what: str) -> str:
    """The import string of a function; one that cannot be imported elsewhere is refused."""
    module, name = getattr(given, "__module__", None), getattr(given, "__qualname__", "")
    if module in (None, "__main__") or not name.isidentifier():
        shown = name if name.isidentifier() else "function"
        raise WeftError(
            f"{what}: {shown} is defined in the script or notebook itself, where other processes cannot find it; "
            f"move it into a module, own.py for instance, and give 'own:{shown}'"
        )
    return f"{module}:{name}"
