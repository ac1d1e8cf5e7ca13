"""weft's own layout: the network's names, with its configuration in `config.json` or in the file's metadata."""

from __future__ import annotations

import dataclasses
from typing import Any

from weft.networks.config import NetworkConfig
from weft.networks.registry import FAMILIES, config_from_dict
from weft.networks.weights.files import Checkpoint
from weft.networks.weights.rules import Adapter, always, row


def config_json(config: NetworkConfig) -> dict[str, Any]:
    """What `config.json` keeps: every field of the configuration."""
    return {"library_name": "weft", **dataclasses.asdict(config)}


def own_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """The part of a `config.json` that is weft's; run folders keep it in a section of its own."""
    section = fields.get("weft")
    stored = section.get("network") if isinstance(section, dict) else None
    return stored if isinstance(stored, dict) else fields


def is_own(fields: dict[str, Any]) -> bool:
    family = own_fields(fields).get("family")
    return isinstance(family, str) and family in FAMILIES


def stored_config(fields: dict[str, Any]) -> NetworkConfig:
    """The configuration in a `config.json`; what others wrote beside it (labels, for instance) is left alone."""
    fields = own_fields(fields)
    kind = FAMILIES[fields["family"]][0]
    names = {field.name for field in dataclasses.fields(kind)}
    return config_from_dict({name: value for name, value in fields.items() if name in names})


def known(checkpoint: Checkpoint) -> dict[str, Any]:
    return dataclasses.asdict(stored_config(checkpoint.config)) if is_own(checkpoint.config) else {}


OWN = Adapter(
    layout="weft",
    holds="",
    marks=frozenset(),
    fits=always,
    known=known,
    table=(row("{rest}"),),
)
