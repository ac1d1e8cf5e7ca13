"""Keep the runs behind a recipe as evidence.

    python benchmarks/recipes.py cifar10/lenet RUN … --note "what mattered"
    weft study draw                  # docs/results/recipes.md and its charts, from what is kept

A RUN is the folder of a finished run of that recipe, one a seed: `weft train SOURCE --recipe NAME --seed N`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from weft.errors import WeftError
from weft.training.recipes import recipe
from weft.training.recipes.evidence import write_evidence
from weft.training.storage.record import read_record


def record(name: str, folders: list[Path], note: str) -> None:
    """Keep the runs, which must be of this recipe."""
    asked = recipe(name)
    found = [read_record(folder / "record.json") for folder in folders]
    for folder, content in zip(folders, found, strict=True):
        if content["status"] != "finished" or content["config"]["model"] != asked.model:
            raise WeftError(f"{folder} holds no finished run of {asked.model}; train it with --recipe {name}")
    print(write_evidence(name, found, note).figure())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--note", default="")
    asked = parser.parse_args()
    record(asked.name, asked.runs, asked.note)


if __name__ == "__main__":
    main()
