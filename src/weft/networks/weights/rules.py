"""How a foreign checkpoint names and shapes its tensors, as tables that are read in both directions.

An adapter is a table with a row for each kind of tensor. `{n}` in a name stands for a block's number, `{p}` for
`weight` or `bias`, `{rest}` for anything: `blocks.{n}.mixer.out.{p}` is timm's `blocks.{n}.attn.proj.{p}`. Since every
tensor of the network goes through exactly one row, what a file lacks and what it has too much is known by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from weft.errors import WeftError
from weft.networks.config import NetworkConfig
from weft.networks.weights.files import Checkpoint


class NoPlace(WeftError):
    """Another layout cannot hold a network: for which reason, and what to do instead."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason, remedy)
        self.reason, self.remedy = reason, remedy

    def __str__(self) -> str:
        return f"{self.reason}; {self.remedy}"


GROUPS = {"{n}": r"(?P<n>\d+)", "{p}": r"(?P<p>weight|bias)", "{rest}": r"(?P<rest>.+)"}


@dataclass(frozen=True)
class Form:
    """How one tensor of weft is kept elsewhere: as one or several tensors, of another shape or order of axes."""

    load: Callable[[list[Tensor]], Tensor]
    save: Callable[[Tensor], list[Tensor]]


SAME = Form(lambda parts: parts[0], lambda tensor: [tensor])
BATCHED = Form(lambda parts: parts[0].squeeze(0), lambda tensor: [tensor[None]])  # (1, …)
TOKEN = Form(lambda parts: parts[0].flatten(), lambda tensor: [tensor[None, None]])  # (1, 1, channels)
POINT = Form(lambda parts: parts[0].flatten(1), lambda tensor: [tensor[:, :, None, None]])  # a 1×1 convolution
STACKED = Form(torch.cat, lambda tensor: list(tensor.chunk(3)))  # queries, keys and values apart


@dataclass(frozen=True)
class Row:
    """One kind of tensor: its name in weft, its name or names in the foreign layout, and its form there."""

    weft: str
    foreign: tuple[str, ...]
    form: Form = SAME

    def match(self, name: str) -> dict[str, str] | None:
        """What the placeholders stand for in `name`, or None if the row is not about it."""
        pattern = re.escape(self.weft).replace(r"\{", "{").replace(r"\}", "}")
        for placeholder, group in GROUPS.items():
            pattern = pattern.replace(placeholder, group)
        found = re.fullmatch(pattern, name)
        return found.groupdict() if found else None


def row(weft: str, *foreign: str, form: Form = SAME) -> Row:
    """A row of a table; without foreign names the two layouts agree."""
    return Row(weft, foreign or (weft,), form)


@dataclass(frozen=True)
class Rule:
    """A row applied to one tensor of a network."""

    weft: str
    foreign: tuple[str, ...]
    form: Form

    @property
    def optional(self) -> bool:
        """The count of batches that a batch norm has seen changes nothing, and older files lack it."""
        return self.weft.endswith("num_batches_tracked")


def nothing_known(checkpoint: Checkpoint) -> dict[str, Any]:
    return {}


def always(config: NetworkConfig) -> bool:
    return True


def unchanged(name: str) -> str:
    return name


@dataclass(frozen=True)
class Adapter:
    """A foreign layout of one kind of network.

    `marks` are names that every such checkpoint has. `fits` tells whether a network of weft has the same tensors, and
    `faithful` whether the other library would also compute the same with them, which saving needs. `known` gives the
    fields of weft's configuration that the checkpoint tells, `usual` those that most such checkpoints have. `extras`
    are tensors that belong to no network here, by pattern, with what they are. `rename` undoes what varies from file
    to file.
    """

    layout: str
    holds: str
    marks: frozenset[str]
    table: tuple[Row, ...]
    fits: Callable[[NetworkConfig], bool]
    faithful: Callable[[NetworkConfig], bool] = always
    head: tuple[str, ...] = ("head.weight", "head.bias")
    known: Callable[[Checkpoint], dict[str, Any]] = nothing_known
    usual: dict[str, Any] = field(default_factory=dict)
    extras: dict[str, str] = field(default_factory=dict)
    rename: Callable[[str], str] = unchanged

    def __str__(self) -> str:
        return f"{self.layout} {self.holds}".strip()

    def rules(self, names: list[str]) -> Iterator[Rule]:
        """The rule of each tensor of a network, by weft's names."""
        for name in names:
            yield self.rule(name)

    def rule(self, name: str) -> Rule:
        for candidate in self.table:
            groups = candidate.match(name)
            if groups is not None:
                return Rule(name, tuple(part.format(**groups) for part in candidate.foreign), candidate.form)
        raise NoPlace(f"{self} has no place for the network's {name}", "use weft's own layout")

    def extra(self, name: str) -> str | None:
        """What a tensor that no network here has is, or None if it should not be there."""
        return next((what for pattern, what in self.extras.items() if re.search(pattern, name)), None)
