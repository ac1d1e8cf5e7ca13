"""`weft models`: the names of all networks, by pattern."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from fnmatch import fnmatch
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
    pretrained: bool = False
    """List trained networks instead: on this machine, by pip, on the Hub."""
    json: bool = False
    """Print JSON, one object a line."""


def run(arguments: Arguments) -> None:
    if arguments.pretrained:
        show_pretrained(trained(arguments.pattern), arguments.json)
        return
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


def trained(pattern: str) -> list[tuple[str, str, str, str]]:
    """(name, where it comes from, whether it is here or how to get it, what it was trained on)."""
    from weft.networks.weights.packages import HUB, INSTALL, PACKAGES

    rows = []
    for name, package in PACKAGES.items():
        here = {None: INSTALL, package.version: "here"}
        state = here.get(package.installed, f"{package.installed} is here, {package.version} is wanted")
        rows.append((name, f"pip: {package.name}", state, package.trained))
    rows += [(name, f"Hub: {source}", "needs the network", "") for name, source in HUB.items()]
    return [row for row in rows if fnmatch(row[0], pattern) or fnmatch(row[0], f"*{pattern}*")]


def show_pretrained(rows: list[tuple[str, str, str, str]], as_json: bool) -> None:
    if as_json:
        for row in rows:
            print(json.dumps(dict(zip(("name", "source", "state", "trained"), row, strict=True))))
        return
    from weft.terminal import console

    if not rows:
        raise WeftError("no trained network matches; `weft models --pretrained` lists all")
    for name, source, state, what in rows:
        line = f"{name}  {source}  {state}" if source.startswith("pip") else f"{name}  {source}"
        console().print(f"{line}  ({what})" if what else line, markup=False, highlight=False, soft_wrap=True)
    console().print(
        "by pip: weft.create_model(NAME, pretrained=True); from the Hub (extra hub): pretrained='OWNER/NAME'",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


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
