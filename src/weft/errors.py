"""The exceptions that a user is meant to read: a sentence saying what is wrong and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class WeftError(Exception):
    """Bad input. The command prints its message on one line and exits with `code`; `--debug` shows the traceback."""

    code = 2


class WorkFailed(WeftError):
    """What was asked for made sense, but its work did not come to a good end: runs died or are missing."""

    code = 1


class Interrupted(WeftError):
    """Stopped by Ctrl-C or SIGTERM with everything saved; the message says how to go on."""

    code = 130


def nearest(word: str, known: Iterable[str], count: int = 3) -> str:
    """The known words closest to `word`, ready for a sentence: `did you mean a, b or c?`, or an empty string."""
    found = difflib.get_close_matches(word, list(known), n=count, cutoff=0.4)
    if not found:
        return ""
    return f"did you mean {' or '.join([', '.join(found[:-1]), found[-1]] if len(found) > 1 else found)}?"
