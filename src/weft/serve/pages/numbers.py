"""Numbers of an address, and figures as a reader sees them."""

from __future__ import annotations

import time

from weft.report.columns import SHARES, share


def whole(words: str | None, usual: int = 1, most: int = 1_000_000) -> int:
    """A whole number of an address from 1 to `most`; the usual one where it says none."""
    good = words is not None and words.isascii() and words.isdigit() and len(words) < 9
    return max(1, min(int(words or 1), most)) if good else usual


def ago(moment: float) -> str:
    """How long ago something was, roughly."""
    seconds = max(0.0, time.time() - moment)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} ago"
    return "just now"


def metric(value: float | None, name: str = "") -> str:
    """A figure as its metric is written: shares in percent."""
    if value is None:
        return "–"
    return share(value) if name in (*SHARES, "validation") and 0 <= value <= 1 else f"{value:.4g}"
