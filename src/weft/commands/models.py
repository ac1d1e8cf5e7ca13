"""`weft models`: the names of all networks, by pattern."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Annotated

import tyro

from weft.errors import WeftError, nearest
from weft.networks.config import ImageTokensConfig, NetworkConfig, TextTokensConfig
from weft.networks.listing import listing
from weft.networks.registry import REGISTRY, list_models


@dataclass(frozen=True)
class Arguments:
    """List the networks that weft can build, with parameters and multiply-adds by formula."""

    pattern: Annotated[str, tyro.conf.Positional] = "*"
    """Names to list, such as `mixer*` or `*_32`."""
    json: bool = False
    """Print JSON, one object a line."""


def run(arguments: Arguments) -> None:
    names = list_models(arguments.pattern) or list_models(f"*{arguments.pattern}*")
    if not names:
        raise WeftError(
            f"no model matches {arguments.pattern!r}; {nearest(arguments.pattern, REGISTRY)} `weft models` lists all"
        )
    rows = [(name, REGISTRY[name]) for name in names]
    if arguments.json:
        for name, config in rows:
            parameters, _ = listing().costs[name]
            print(json.dumps({"name": name, "parameters": parameters, **dataclasses.asdict(config)}))
    else:
        show(rows)


def show(rows: list[tuple[str, NetworkConfig]]) -> None:
    from rich import box
    from rich.table import Table

    from weft.terminal import console

    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        show_edge=False,
        caption="MACs: multiply-adds of one example's forward pass",
    )
    for column in ("name", "reads", "shape"):
        table.add_column(column, no_wrap=True)
    for column in ("parameters", "MACs"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, config in rows:
        parameters, macs = listing().costs[name]
        table.add_row(name, config.input, shape(config), f"{parameters:,}", short(macs))
    console().print(table)


def short(number: int) -> str:
    """Three digits and a unit: 12.6 G, 75.9 M, 446 k."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return str(number)


def shape(config: NetworkConfig) -> str:
    """The few numbers that tell sizes of a family apart."""
    if isinstance(config, ImageTokensConfig | TextTokensConfig):
        patch = f"P{config.patch_size} " if isinstance(config, ImageTokensConfig) else f"S{config.max_length} "
        hidden = "E" if config.block == "gated" else "D"
        return f"{patch}C{config.dim} {hidden}{config.hidden_dim} L{config.depth}"
    fields = dataclasses.asdict(config)
    shown = ("hidden", "channels", "layers", "width", "dim")
    return " ".join(f"{key} {dashed(fields[key])}" for key in shown if fields.get(key))[:19]


def dashed(value: int | tuple[int, ...]) -> str:
    return "-".join(str(number) for number in value) if isinstance(value, tuple) else str(value)
