"""What the family files say of their sizes and mixers, known without torch.

The sizes stand beside the classes, in files that import torch, which takes a second or more. So the first process that
asks imports the files and writes what they say into a small file in weft's cache folder; it holds as long as no file of
`networks/` and `nn/` changes. Where the cache cannot be read or written, the files are imported each time.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any

from weft import __version__
from weft.disk import cache_folder
from weft.errors import WeftError
from weft.networks.config import NetworkConfig

PACKAGE = Path(__file__).parents[1]


@dataclasses.dataclass(frozen=True)
class Listing:
    """Named networks, and for each its parameters and multiply-adds."""

    networks: dict[str, NetworkConfig]
    costs: dict[str, tuple[int, int]]


_reaches: dict[str, int | None] = {}  # of weft's own mixers: checking a configuration needs it


@cache
def listing() -> Listing:
    """From the cache, or from the family files if they changed."""
    with suppress(OSError, ValueError, LookupError, AttributeError, TypeError, WeftError):
        return restored(json.loads(cache_file().read_text()))
    found = collected()
    with suppress(OSError, WeftError):
        store(found)
    return found


def reaches() -> dict[str, int | None]:
    """Of weft's own mixers: how many tokens in a row one token sees, None for all."""
    if not _reaches:
        listing()
    return _reaches


def is_own(kind: type[Any]) -> bool:
    return kind.__module__.startswith("weft.")


def collected() -> Listing:
    """What the family files say."""
    from weft.networks.measure.cost import total_macs, total_parameters
    from weft.networks.registry import FAMILIES, MIXERS, load_families

    load_families()
    _reaches.update({name: getattr(kind, "reach", None) for name, kind in MIXERS.items() if is_own(kind)})
    files = dict.fromkeys(where.partition(":")[0] for _, where in FAMILIES.values())
    modules: Iterable[Any] = (import_module(f"weft.networks.{name}") for name in files)
    networks = {name: config for module in modules if hasattr(module, "sizes") for name, config in module.sizes()}
    costs = {name: (total_parameters(config), total_macs(config)) for name, config in networks.items()}
    return Listing(networks, costs)


def cache_file() -> Path:
    """One for each place that weft is installed in."""
    return cache_folder() / f"networks-{blake2b(str(PACKAGE).encode(), digest_size=4).hexdigest()}.json"


def key() -> list[Any]:
    """Changes when a file of a network does."""
    files = sorted([*(PACKAGE / "networks").rglob("*.py"), *(PACKAGE / "nn").glob("*.py")])
    return [__version__, *([path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in files)]


def store(found: Listing) -> None:
    """Put the file there whole or not at all; it can always be made again, so nothing waits for the disk."""
    networks = {name: dataclasses.asdict(config) for name, config in found.networks.items()}
    path = cache_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(json.dumps({"key": key(), "reaches": _reaches, "networks": networks, "costs": found.costs}))
    aside.replace(path)


def restored(stored: dict[str, Any]) -> Listing:
    """What was stored, if it still holds."""
    from weft.networks.registry import FAMILIES

    if stored["key"] != key() or not stored["reaches"]:
        raise ValueError("the files have changed")
    _reaches.update(stored["reaches"])
    networks = {name: FAMILIES[fields["family"]][0](**fields) for name, fields in stored["networks"].items()}
    return Listing(networks, {name: (int(p), int(m)) for name, (p, m) in stored["costs"].items()})
