"""What `weft.probe` returns: the figures of all networks, and which of them suits the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, repr=False)
class Probe:
    """What simple classifiers make of the features of trained networks."""

    summary: dict[str, Any]
    """everything that the page of `weft probe` shows"""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dictionary per network, best first by the validation split: `classifiers` and `shots` hold mean, low and
        high on the test split."""
        return list(self.summary["rows"])

    @property
    def best(self) -> str:
        """The network that the validation split prefers."""
        return str(self.rows[0]["name"])

    @property
    def recommendation(self) -> str:
        """The same in a sentence, with its figure on the test split."""
        return str(self.summary["recommendation"])

    def __repr__(self) -> str:
        found = {row["name"]: row["classifiers"][row["best"]]["mean"] for row in self.rows}
        return "\n".join([*(f"{name}  {mean:.4f}" for name, mean in found.items()), self.recommendation])
