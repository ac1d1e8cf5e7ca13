"""Functions and classes of the user's own, named `package.module:name`: a name survives worker processes and resuming.

Importing a module runs it, so it happens only for names that a person gave: on the command line, in a call, or in
$WEFT_TRUST_MODULES (`mypackage,other.module`). A name that was merely found in a file, the run.yaml of a downloaded run
for instance, is refused unless its module is loaded already. Child processes inherit what was trusted.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from weft.errors import WeftError, nearest

TRUSTED = "WEFT_TRUST_MODULES"
IMPORT_STRING = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


class Untrusted(WeftError):
    """Code that a file names and that nobody vouches for."""


def is_import_string(name: Any) -> bool:
    """Whether a name is an import string."""
    return isinstance(name, str) and IMPORT_STRING.fullmatch(name) is not None


def trust(given: Any) -> None:
    """Allow the modules of import strings that a person gave, here and in processes started from here."""
    if isinstance(given, dict):
        given = list(given.values())
    if isinstance(given, list | tuple):
        for part in given:
            trust(part)
    if not isinstance(given, str):
        return
    for part in re.split(r"[=,\s]", given):
        if is_import_string(part) and (module := part.partition(":")[0]) not in trusted():
            os.environ[TRUSTED] = ",".join([*trusted(), module])


def trusted() -> list[str]:
    return [name.strip() for name in os.environ.get(TRUSTED, "").split(",") if name.strip()]


def require_trust(name: str) -> None:
    """Refuse an import string that nobody vouches for."""
    module = name.partition(":")[0]
    inside = any(module == known or module.startswith(f"{known}.") for known in trusted())
    loaded = module in sys.modules and module.partition(".")[0] not in sys.stdlib_module_names  # `os` always is
    if not loaded and not inside:
        raise Untrusted(
            f"{name} names code outside of weft, which is not run because a file says so; if you trust it, import "
            f"{module} first, name it on the command line, or set {TRUSTED}={module}"
        )


def function(name: str, what: str) -> Callable[..., Any]:
    """The function that `package.module:function` names; `what` it is for stands in the sentences."""
    found = imported(name, what)
    if not callable(found):
        raise WeftError(f"{what} {name} is a {type(found).__name__}; name a function")
    return found


def module_class(name: str) -> Any:
    """The `nn.Module` class that `package.module:Class` names."""
    from torch import nn

    found = imported(name, "network or mixer")
    if not isinstance(found, type) or not issubclass(found, nn.Module):
        raise WeftError(f"{name} is no class of torch's nn.Module; name one that is")
    return found


def imported(name: str, what: str) -> Any:
    """What an import string names, if somebody vouches for it; its module may lie in the current folder."""
    if not is_import_string(name):
        raise WeftError(f"{what} {name!r} is no import string; write package.module:name")
    require_trust(name)
    return _imported(name, what)


@lru_cache
def _imported(name: str, what: str) -> Any:
    """Imported once a process: a change to the module takes effect in the next one."""
    module_name, _, attribute = name.partition(":")
    try:
        with current_folder():
            module = import_module(module_name)
    except ModuleNotFoundError as error:
        raise WeftError(
            f"{what} {name}: {error}; install its package, or put the folder that holds it on PYTHONPATH"
        ) from error
    except (Exception, SystemExit) as error:  # a user's module may raise anything, and a script may end itself
        why = f"{type(error).__name__}: {error}"
        raise WeftError(f"{what} {name}: {module_name} cannot be imported ({why}); mend it") from error
    if not hasattr(module, attribute):
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        hint = nearest(attribute, known) or f"it has {', '.join(known[:5]) or 'no function'}"
        raise WeftError(f"{what} {name}: {module_name} has no {attribute}; {hint}")
    return getattr(module, attribute)


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
