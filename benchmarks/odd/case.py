"""What a case is, and what is demanded of every one of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odd.place import Place

Content = str | bytes | Callable[[Path], object]  # of a file; or a function that makes whatever shall be at the path
Ends = Mapping[int, str | tuple[str, ...]]  # exit codes that are right -> what must then be said
State = Mapping[str, str]  # path -> what is there


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int | None  # None: it did not
    out: str = ""
    err: str = ""


Story = Callable[["Place"], Iterator[tuple[Ended, Ends]]]  # for what one line of shell does not tell


@dataclass(frozen=True)
class Case:
    """Files in an empty folder, a line typed there, and how it must end."""

    name: str
    files: Mapping[str, Content]
    command: str | Story
    ends: Ends = field(default_factory=dict)
    writes: tuple[str, ...] = ()  # patterns of the files that may be new afterwards
    changes: tuple[str, ...] = ()  # and of those that may be changed or gone
    never: tuple[str, ...] = ()  # what must not be printed
    foreign: str = r"(?!)"  # lines of stderr that are not weft's own and that it cannot prevent
    env: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 90.0

    @property
    def words(self) -> list[str] | None:
        """The arguments of `weft`, where the command is nothing but weft with arguments."""
        if not isinstance(self.command, str) or self.env or re.search(r"[|&;<>$*?\n]", self.command):
            return None
        words = shlex.split(self.command)
        return words[1:] if words[0] == "weft" else None


ACTION = re.compile(  # a sentence that tells what to do, or what there is to choose from, or what was expected
    r"\b(use|give|add|remove|try|choose|write|move|free|fill|wait|install|upgrade|delete|repair|restore|rename|put|take|"
    r"leave|continue|resume|shorten|quote|convert|copy|keep|say|unpack|fetch|make room|did you mean|needs?|must|wants?|"
    r"should be|lists|reads|takes|anew)\b|--[a-z]|`weft|[;:] ([Ii]t has|there are|the \w+ are) |, not |\?$|\bline \d"
)
WARNING = re.compile(r"^.*\b\w*Warning\b:.*$", re.MULTILINE)
UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e]")  # codes of terminals, and unbounded bidi
LONGEST = 1200  # letters of a sentence that a person still reads


def judge(case: Case, ended: Ended, ends: Ends) -> list[str]:
    """What is wrong with the way a command ended; nothing, when all is well."""
    if ended.code is None:
        return [f"still running after {case.seconds:g} s"]
    return [
        *([] if ended.code in ends else [f"exit code {ended.code}, not {' or '.join(map(str, ends))}"]),
        *_printed(case, ended),
        *_error(case, ended),
        *_unsaid(ended, ends.get(ended.code, ())),
    ]


def _printed(case: Case, ended: Ended) -> Iterator[str]:
    whole = ended.out + ended.err
    if "Traceback (most recent call last)" in whole:
        yield "a traceback"
    if found := WARNING.search(ended.err):
        yield f"a warning: {found[0][:160]}"
    if found := UNSAFE.search(whole):
        yield f"prints the control character {found[0]!r}"
    for word in case.never:
        if word in whole:
            yield f"prints {word!r}"


def _error(case: Case, ended: Ended) -> Iterator[str]:
    """At most one line, which is a sentence with a remedy; exactly one where bad input or failed work is told."""
    lines = [line for line in ended.err.splitlines() if line.strip() and not re.search(case.foreign, line)]
    if len(lines) > 1:
        yield f"{len(lines)} lines of error"
    if not lines and ended.code in (1, 2):
        yield "no line of error"
    for line in lines[:1]:
        if not line.startswith("weft: "):
            yield f"an error that does not begin with `weft: `: {line[:160]}"
        elif len(line) > LONGEST:
            yield f"a line of {len(line)} letters"
        elif ended.code in (1, 2) and not ACTION.search(line.removeprefix("weft: ")):
            yield f"no remedy: {line[:160]}"


def _unsaid(ended: Ended, wanted: str | tuple[str, ...]) -> Iterator[str]:
    whole = ended.err if ended.code in (1, 2) else ended.out + ended.err
    for word in (wanted,) if isinstance(wanted, str) else wanted:
        if word not in whole:
            yield f"does not say {word!r}"


def touched(case: Case, before: State, after: State) -> Iterator[str]:
    """Files that the command should have left alone."""
    altered = [path for path, what in before.items() if after.get(path) != what and not _covered(path, case.changes)]
    if changed := [path for path in altered if path in after]:
        yield f"changed {_some(changed)}"
    if deleted := [path for path in altered if path not in after]:
        yield f"deleted {_some(deleted)}"
    if new := [path for path in after if path not in before and not _covered(path, case.writes)]:
        yield f"left {_some(new)}"


def _some(paths: list[str]) -> str:
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


def _covered(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(path, pattern) or pattern.startswith(f"{path}/") for pattern in patterns)
