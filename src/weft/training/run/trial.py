"""The child process of `training/run/rehearsal.py`, which ends with its parent, also while it still loads torch.

python -P -m weft.training.run.trial PARENT format bf16 cpu [strides]
python -P -m weft.training.run.trial PARENT step RUN bf16 eager|compiled cpu THREADS
"""

from __future__ import annotations

import dataclasses
import json
import sys

from weft import machine


def main(parent: int, words: list[str]) -> None:
    """Try what the words say, and print the answer."""
    machine.ends_with_parent(machine.KILL, parent)
    from weft.training.run import rehearsal  # loads torch

    print(json.dumps(dataclasses.asdict(rehearsal.attempt(words))))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
