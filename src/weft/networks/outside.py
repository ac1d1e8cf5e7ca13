"""Classes that are not weft's, named by an import string, `package.module:Class`, which survives processes.

Importing a module runs it, so it happens only for names that a person gave: on the command line, in a call, or in
$WEFT_TRUST_MODULES (`mypackage,other.module`). A name that was merely found in a file, the `config.json` of a
downloaded run for instance, is refused unless its module is loaded already. Child processes inherit what was trusted.
"""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from typing import Any

from weft.errors import WeftError

TRUSTED = "WEFT_TRUST_MODULES"
IMPORT_STRING = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


class Untrusted(WeftError):
    """Code that a file names and that nobody vouches for."""


def is_outside(name: Any) -> bool:
    """Whether a name is an import string."""
    return isinstance(name, str) and IMPORT_STRING.fullmatch(name) is not None


def trust(name: Any) -> None:
    """Allow the module of an import string that a person gave, here and in processes started from here."""
    if is_outside(name) and (module := name.partition(":")[0]) not in trusted():
        os.environ[TRUSTED] = ",".join([*trusted(), module])


def trust_words(words: list[str]) -> None:
    """Allow what stands on a command line: `--model a.b:C`, `--models=x,a.b:C`, `--network mixer=a.b:C`."""
    for word in words:
        for part in re.split(r"[=,\s]", word):
            trust(part)


def trusted() -> list[str]:
    return [name.strip() for name in os.environ.get(TRUSTED, "").split(",") if name.strip()]


def require_trust(name: str) -> None:
    """Refuse the import string of a file that nobody vouches for."""
    module = name.partition(":")[0]
    inside = any(module == known or module.startswith(f"{known}.") for known in trusted())
    if module not in sys.modules and not inside:
        raise Untrusted(
            f"{name} names code outside of weft, which is not run because a file says so; if you trust it, import "
            f"{module} first, give it with --model, or set {TRUSTED}={module}"
        )


def import_module_class(name: str) -> Any:
    """The `nn.Module` class of an import string."""
    from torch import nn

    require_trust(name)
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise WeftError(
            f"cannot import {name}: {error}; install its package, or put the folder that holds it on PYTHONPATH"
        ) from error
    except AttributeError as error:
        raise WeftError(f"the module {module} has no {attribute}; {name} must name a class in it") from error
    except Exception as error:
        raise WeftError(f"cannot import {name}: {type(error).__name__}: {error}; mend {module}") from error
    if not isinstance(found, type) or not issubclass(found, nn.Module):
        raise WeftError(f"{name} is no class of torch's nn.Module; name one that is")
    return found
