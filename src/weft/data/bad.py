"""What is done with bad rows: stop at the first with a sentence, or leave them out, counted and reported."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.data.config import OnBad
from weft.errors import WeftError

_SHOWN = 5


def refusal(place: str, why: str) -> WeftError:
    """The sentence about a bad row that stops the work."""
    return WeftError(f"{place}: {why}; repair or remove it, or leave bad rows out with --on-bad skip")


@dataclass
class Ledger:
    """The bad rows of a source, each as a sentence naming file and row."""

    on_bad: OnBad
    sentences: list[str] = field(default_factory=list)

    def enter(self, place: str, why: str) -> None:
        """Record a bad row, or refuse the source because of it."""
        if self.on_bad == "fail":
            raise refusal(place, why)
        self.sentences.append(f"{place}: {why}")

    def notes(self) -> list[str]:
        """What the record says about skipped rows: how many, and the first few by name."""
        if not self.sentences:
            return []
        more = len(self.sentences) - _SHOWN
        shown = "; ".join(self.sentences[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        rows = "1 bad row was" if len(self.sentences) == 1 else f"{len(self.sentences)} bad rows were"
        return [f"{rows} skipped: {shown}"]
