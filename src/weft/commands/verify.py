"""`weft verify`: does a run give the same bits again?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional


@dataclass(frozen=True)
class Arguments:
    """Verify a run: repeat some steps from a stored checkpoint, compare bits, evaluate the final weights again"""

    run: Positional[Path]
    """Run folder."""
    steps: int = 50
    """Steps to repeat, at most; fewer when the next checkpoint comes before."""


def run(arguments: Arguments) -> int:
    """Print what was compared; 0 when all was equal, 1 when not."""
    from weft.training.inference.verify import verify

    equal = True
    for finding in verify(arguments.run, arguments.steps):
        print(("same   " if finding.same else "differs ") + finding.what)
        equal = equal and finding.same
    return 0 if equal else 1
