"""What tyro has to say about wrong flags, in one sentence: its boxes are for reading at leisure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, get_type_hints

from weft.errors import nearest

if TYPE_CHECKING:
    from pydantic import ValidationError

FRAME = re.compile(r"^[│╭╰|+\s]+|[│╮╯|+\s]+$")
RULE = re.compile(r"^[─╭╰╮╯ -]*$")


def sentence(said: str, verb: str, arguments: Any) -> str:
    """The first part of a box of tyro's as one line, with where to look for more."""
    inner = [FRAME.sub("", line) for line in said.splitlines()]
    parts: list[list[str]] = [[]]
    for line in inner[1:]:  # the first has the title
        if RULE.match(line):
            parts.append([])
        else:
            parts[-1].append(line)
    first = " ".join(next((part for part in parts if part), inner)).split()
    text = plain(" ".join(first)).rstrip(".")
    if found := re.match(r"unrecognized options: (--[^ ,=]+)", text):
        meant = nearest(found[1], flags(arguments))
        text = f"there is no flag {found[1]}" + (f"; {meant}" if meant else ";")
        return f"{text} `weft {verb} --help` lists all"
    return f"{text}; `weft {verb} --help` lists what there is"


def flags(arguments: Any) -> Iterator[str]:
    """The flags of a dataclass of arguments and of those inside of it."""
    for name, kind in get_type_hints(arguments).items():
        if dataclasses.is_dataclass(kind):
            yield from flags(kind)
        else:
            yield "--" + name.replace("_", "-")


def refusal(error: ValidationError) -> str:
    """The first complaint of a validator, by its flag."""
    first = error.errors()[0]
    name = str((first["loc"] or ("value",))[-1]).replace("_", "-")
    return f"--{name}: {lower(first['msg'])}, not {first['input']!r}"


def plain(text: str) -> str:
    """Without the types and addresses that validators add to their messages."""
    text = re.sub(r"\[type=.*?\]|For further information visit \S+", "", text)
    if found := re.search(r"Error parsing \S+: \d+ validation errors? for \w+ (.*)", text):
        name, _, why = found[1].partition(" ")
        return f"--{name.replace('_', '-')}: {lower(why.strip())}"
    untyped = r"Error parsing (\S+): no type matching (.+?) could be instantiated from \['?(.*?)'?\]"
    if found := re.search(untyped, text):
        kinds = [kind for kind in found[2].split("|") if kind != "{None}"]
        return f"{found[1]} takes {' or '.join(kinds)}, not {found[3]!r}"
    if found := re.search(r"Error parsing (\S+): invalid literal for int\(\) with base 10: (.*)", text):
        return f"{found[1]} takes a whole number, not {found[2]}"
    if found := re.search(r"Error parsing (\S+): could not convert string to float: (.*)", text):
        return f"{found[1]} takes a number, not {found[2]}"
    return lower(re.sub(r"^Error parsing (\S+): ", r"\1: ", text))


def lower(text: str) -> str:
    return text[:1].lower() + text[1:]
