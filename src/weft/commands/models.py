"""`weft models`: the names of all networks, by pattern."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Annotated

import tyro

from weft.errors import WeftError, nearest
from weft.networks.config import ImageTokensConfig, NetworkConfig, TextTokensConfig
from weft.networks.formulas import total_macs, total_parameters
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
        raise WeftError(f"no model matches {arguments.pattern!r}; {nearest(arguments.pattern, REGISTRY)}")
    rows = [(name, REGISTRY[name]) for name in names]
    if arguments.json:
        for name, config in rows:
            print(json.dumps({"name": name, "parameters": total_parameters(config), **dataclasses.asdict(config)}))
    else:
        show(rows)


def show(rows: list[tuple[str, NetworkConfig]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, caption="M mult-adds: millions of multiply-adds for one example")
    for column in ("name", "reads", "shape"):
        table.add_column(column, no_wrap=True)
    for column in ("parameters", "M mult-adds"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, config in rows:
        millions = total_macs(config) / 1e6
        size = f"{millions:,.0f}" if millions >= 10 else f"{millions:.2f}"
        table.add_row(name, config.input, shape(config), f"{total_parameters(config):,}", size)
    Console().print(table)


def shape(config: NetworkConfig) -> str:
    """The few numbers that tell sizes of a family apart."""
    if isinstance(config, ImageTokensConfig | TextTokensConfig):
        patch = f"P{config.patch_size} " if isinstance(config, ImageTokensConfig) else f"S{config.max_length} "
        hidden = "E" if config.block == "gated" else "D"
        return f"{patch}C{config.dim} {hidden}{config.hidden_dim} L{config.depth}"
    fields = dataclasses.asdict(config)
    shown = ("hidden", "channels", "layers", "width", "dim", "kernel", "kernels", "fc")
    return " ".join(f"{key} {dashed(fields[key])}" for key in shown if fields.get(key))[:26]


def dashed(value: int | tuple[int, ...]) -> str:
    return "-".join(str(number) for number in value) if isinstance(value, tuple) else str(value)
