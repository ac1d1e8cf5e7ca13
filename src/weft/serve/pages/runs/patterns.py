"""Patterns that a reader types to filter a list: regular expressions that no text can make slow.

Python's engine tries every way in which a pattern may fit. Where only single characters are repeated, and few choices
are left to it, there are few ways; other patterns are refused with a sentence.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from weft.errors import WeftError

LONGEST = 100  # letters of a pattern
LOOKED_AT = 300  # letters of a text
SECONDS = 1.0  # for all texts of a list
CHOICES, ENDLESS = 8, 2  # alternatives and repetitions in a pattern, and how many of these may have no end
REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
SINGLE = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)
HARMLESS = (*SINGLE, sre.AT, sre.SUBPATTERN, sre.BRANCH, *REPEATS)


class BadPattern(WeftError):
    """A pattern that cannot be used."""


def matcher(words: str) -> Callable[[str], bool]:
    """Whether a text holds the pattern anywhere, capitals or not; all do where it is empty."""
    if not words:
        return lambda text: True
    if len(words) > LONGEST:
        raise BadPattern(f"a pattern may have {LONGEST} letters; this one has {len(words)}")
    try:
        check(parser.parse(words, re.IGNORECASE))
        pattern = re.compile(words, re.IGNORECASE)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadPattern(
            f"{words!r} is no regular expression ({error}); write \\ before a sign that stands for itself"
        ) from error
    until = time.monotonic() + SECONDS

    def matches(text: str) -> bool:
        if time.monotonic() > until:
            raise BadPattern(f"{words!r} takes too long for so many; write more of what is looked for")
        return pattern.search(text[:LOOKED_AT]) is not None

    return matches


def check(parsed: Any) -> None:
    """Refuse what may take long."""
    choices = endless = 0
    for kind, argument in nodes(parsed):
        if kind not in HARMLESS:
            raise BadPattern(
                "a pattern may have letters, classes, groups, | and repetitions; look-around and the like are too slow"
            )
        if kind in REPEATS:
            _, most, repeated = argument
            if most > 1 and (len(repeated) != 1 or repeated[0][0] not in SINGLE):
                raise BadPattern(
                    "only single characters may be repeated, as in .* or [0-9]+; repeated groups are too slow"
                )
            endless += most == sre.MAXREPEAT
        choices += kind == sre.BRANCH or kind in REPEATS
    if choices > CHOICES or endless > ENDLESS:
        raise BadPattern(f"a pattern may have {ENDLESS} endless repetitions and {CHOICES} choices in all; use fewer")


def nodes(parsed: Any) -> Iterator[tuple[Any, Any]]:
    """The parts of a pattern, and the parts of these."""
    for kind, argument in parsed:
        yield kind, argument
        inner: list[Any] = []
        if kind == sre.SUBPATTERN:
            inner = [argument[-1]]
        elif kind == sre.BRANCH:
            inner = list(argument[1])
        elif kind in REPEATS:
            inner = [argument[2]]
        for part in inner:
            yield from nodes(part)
