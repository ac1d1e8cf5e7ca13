"""Configurations as YAML and plain dictionaries; an unknown key is answered with the nearest known one."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import yaml
from pydantic import ValidationError

from weft.disk import adapter, complaint, read_text
from weft.errors import WeftError, nearest

T = TypeVar("T")

# libyaml's are ten times as fast, and PyYAML's wheels have them
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
LIMIT, DEPTH = 1 << 20, 32  # bytes and levels of a file, far beyond any real configuration


def to_dict(config: Any) -> dict[str, Any]:
    """A configuration as plain dictionaries, lists, numbers and strings."""
    plain: dict[str, Any] = adapter(type(config)).dump_python(config, mode="json")
    return plain


def from_dict(kind: type[T], values: dict[str, Any], where: str = "") -> T:
    """The configuration of class `kind` with `values`; keys left out have their defaults."""
    check_keys(kind, values, where)
    try:
        found: T = adapter(kind).validate_python(values)
        return found
    except ValidationError as error:
        raise WeftError(where + complaint(error)) from error
    except (WeftError, OverflowError, RecursionError) as error:
        raise WeftError(f"{where}{error}") from error


@cache
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def check_keys(kind: Any, values: Any, where: str = "") -> None:
    """Raise if `values` has a key, at any depth, that the dataclass `kind` has not."""
    if not isinstance(values, dict):
        raise WeftError(f"{where}expected a mapping of keys to values, not {type(values).__name__}")
    types = _types(kind)
    known = [field.name for field in dataclasses.fields(kind)]
    for key, value in values.items():
        if key not in known:
            raise WeftError(f"{where}unknown key {key!r}; {nearest(str(key), known) or 'known: ' + ', '.join(known)}")
        if dataclasses.is_dataclass(types[key]) and value is not None:
            check_keys(types[key], value, f"{where}{key}: ")


def write(config: Any) -> str:
    """A configuration as YAML text, keys in the order of the dataclass."""
    return dump(to_dict(config))


def dump(content: dict[str, Any]) -> str:
    """Plain content as YAML text, keys in their order."""
    try:
        return str(yaml.dump(content, Dumper=DUMPER, sort_keys=False, allow_unicode=True))
    except UnicodeEncodeError as error:
        raise WeftError(
            f"the name {error.object!r} is not UTF-8, so that no record could hold it; rename it"
        ) from error


def read(kind: type[T], path: Path) -> T:
    """The configuration stored in a YAML file."""
    return from_dict(kind, read_mapping(path), f"{path}: ")


def read_mapping(path: Path) -> dict[str, Any]:
    """The mapping stored in a YAML file; what its values are is left to others."""
    text = read_text(path, LIMIT)
    try:
        check_events(text, path)
        values = yaml.load(text, LOADER)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise WeftError(
            f"{path} is not valid YAML ({' '.join(str(error).split())}); repair it, or write one with --print-config"
        ) from error
    if not isinstance(values, dict):
        raise WeftError(f"{path} holds no mapping of keys to values; write one with --print-config")
    return values


def check_events(text: str, path: Path) -> None:
    """Refuse what a few lines can make endless: aliases, which stand for other parts, and very deep nesting."""
    depth = 0
    for event in yaml.parse(text, LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise WeftError(f"{path} has an alias (*{event.anchor}), which weft does not read; write its content out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH:
            raise WeftError(
                f"{path} is nested more than {DEPTH} levels deep; restore it, or write one with --print-config"
            )


def difference(before: Any, after: Any, prefix: str = "") -> list[str]:
    """Fields in which two configurations of one class differ, as `lr: 0.001 -> 0.1`."""
    if not dataclasses.is_dataclass(before):
        return [] if before == after else [f"{prefix}: {before} -> {after}"]
    lines: list[str] = []
    for field in dataclasses.fields(before):
        lines += difference(getattr(before, field.name), getattr(after, field.name), field.name)
    return lines
