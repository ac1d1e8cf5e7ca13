"""What tyro has to say about wrong flags, in one sentence: its boxes are for reading at leisure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from weft.commands import help
from weft.errors import nearest

if TYPE_CHECKING:
    from pydantic import ValidationError

FRAME = re.compile(r"^[│╭╰|+\s]+|[│╮╯|+\s]+$")
RULE = re.compile(r"^[─╭╰╮╯ -]*$")
ELSEWHERE = {  # names that a flag had, or has in other programs
    "--accumulate": ("--grad-accum-steps",),
    "--budget": ("--amount", "--pretrain-time", "--time"),
    "--cased": ("--no-lowercase",),
    "--clip": ("--clip-grad",),
    "--erasing": ("--reprob",),
    "--format": ("--json",),
    "--image-size": ("--img-size",),
    "--jitter": ("--color-jitter",),
    "--learning-rate": ("--lr",),
    "--mask-share": ("--mask-fraction",),
    "--model-ema": ("--model-ema-decay",),
    "--optimizer": ("--opt",),
    "--out": ("--output",),
    "--report": ("--test-fraction",),
    "--seed": ("--split-seed",),
    "--select": ("--val-fraction",),
    "--share": ("--train-fraction",),
    "--sheet": ("--output",),
    "--size": ("--img-size",),
    "--vocab": ("--vocab-size",),
}


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
        meant = renamed(found[1], arguments) or nearest(found[1], flags(arguments))
        text = f"there is no flag {found[1]}" + (f"; {meant}" if meant else ";")
        return f"{text} `weft {verb} --help-all` lists all"
    return f"{text}; `weft {verb} --help-all` lists what there is"


def flags(arguments: Any) -> list[str]:
    """The flags of a dataclass of arguments."""
    every = list(help.options(arguments))
    every += [inner for one in every for kind, _ in help.choices(one.kind).values() for inner in help.options(kind)]
    return [option.word for option in every if not option.positional]


def renamed(flag: str, arguments: Any) -> str:
    """The flag that has taken the place of another, or is called otherwise elsewhere, ready for a sentence."""
    known = set(flags(arguments))
    found = next((word for word in ELSEWHERE.get(flag, ()) if word.replace("--no-", "--") in known), None)
    return f"did you mean {found}?" if found else ""


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
