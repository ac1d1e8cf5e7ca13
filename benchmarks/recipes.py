"""Keep the runs behind a recipe as evidence, and measure what its parts bring.

    python benchmarks/recipes.py keep cifar10/lenet RUN … --note "what mattered"
    python benchmarks/recipes.py changes cifar10/mixer SOURCE WORK [--epochs 6]
    weft study draw                  # docs/results/recipes.md and its charts, from what is kept

A RUN is the folder of a finished run of that recipe, one a seed: `weft train SOURCE --recipe NAME --seed N`. `changes`
trains the recipe for fewer epochs as it is and with one change at a time, one after the other and on one thread, judged
on the validation split; WORK keeps the runs, and the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from weft.errors import WeftError
from weft.training.recipes import recipe
from weft.training.recipes.evidence import Change, evidence_of, write_changes, write_evidence
from weft.training.storage.record import read_record

CHANGES = {
    "AdamW at 0.003 in place of Muon": ["--opt", "adamw", "--lr", "0.003"],
    "a rate of 0.004": ["--lr", "0.004"],
    "without CutMix": ["--cutmix", "0"],
    "without an average of the weights": ["--model-ema-decay", "0"],
    "answers to the image alone, without its mirror image": ["--network", "mirrored=false"],
}


def keep(name: str, folders: list[Path], note: str) -> None:
    """Keep the runs, which must be of this recipe; without a note the one of before stays."""
    asked = recipe(name)
    found = [read_record(folder / "record.json") for folder in folders]
    for folder, content in zip(folders, found, strict=True):
        if content["status"] != "finished" or content["config"]["model"] != asked.model:
            raise WeftError(f"{folder} holds no finished run of {asked.model}; train it with --recipe {name}")
    known = evidence_of(name)
    print(write_evidence(name, found, note or (known.note if known else "")).figure())


def changes(name: str, source: str, work: Path, epochs: float) -> None:
    """The recipe as it is and with each change that it has something of, kept after every run."""
    known, found = evidence_of(name), list[Change]()
    if known is None:
        raise WeftError(f"no runs of {name} are kept that changes could stand beside; `keep` them first")
    for number, (what, flags) in enumerate({"": [], **changes_of(name)}.items()):
        folder = work / f"{name.replace('/', '-')}-{number}"
        if not (folder / "record.json").is_file():
            begin = [source, "--recipe", name, "--epochs", f"{epochs:g}", "--judged-on", "validation", "--threads", "1"]
            again = ["--resume", str(folder)] if (folder / "run.yaml").is_file() else None
            asked = again or [*begin, *flags, "--output", str(folder)]
            subprocess.run([sys.executable, "-m", "weft", "train", *asked], check=True)
        record = read_record(folder / "record.json")
        score = record["metrics"][record["metric"]]
        found.append(Change(what, round(score, 5), round(record["epochs"], 3), round(record["cpu_seconds"], 1)))
        print(f"{what or 'as it is'}: {score:.4f}", flush=True)
        known = write_changes(known, found)


def changes_of(name: str) -> dict[str, list[str]]:
    """The changes that change anything of a recipe."""
    mixes = recipe(name).augment.cutmix > 0
    return {what: flags for what, flags in CHANGES.items() if mixes or "--cutmix" not in flags}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(required=True, dest="action")
    kept = actions.add_parser("keep")
    kept.add_argument("name")
    kept.add_argument("runs", nargs="+", type=Path)
    kept.add_argument("--note", default="")
    changed = actions.add_parser("changes")
    changed.add_argument("name")
    changed.add_argument("source")
    changed.add_argument("work", type=Path)
    changed.add_argument("--epochs", type=float, default=6)
    asked = parser.parse_args()
    if asked.action == "keep":
        keep(asked.name, asked.runs, asked.note)
    else:
        changes(asked.name, asked.source, asked.work, asked.epochs)


if __name__ == "__main__":
    main()
