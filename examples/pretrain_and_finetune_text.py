"""Does pre-training help? A text network learns words first, then classes; and a twin learns the classes alone.

    python examples/pretrain_and_finetune_text.py [--output FOLDER] [--quick]

The text is `pydocs`, which comes with weft: first sentences of Python's own documentation, and the package each is of.
Commands are those of a shell: `weft pretrain`, `weft finetune`, `weft train`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

QUICK = {
    "pretrain": ["--steps", "4", "--batch-size", "8", "--max-length", "16", "--network", "depth=1", "dim=32"],
    "finetune": ["--steps", "4", "--batch-size", "8"],
}
USUAL = {
    "pretrain": ["--steps", "1500", "--max-length", "64"],
    "finetune": ["--epochs", "5"],
    "train": ["--epochs", "5", "--max-length", "64"],
}


def weft(*words: str) -> None:
    """A command of weft, its output on this terminal; stops here when it fails."""
    print("$ weft", *words, flush=True)
    subprocess.run([sys.executable, "-m", "weft", *words], check=True)


def accuracy(run: Path) -> float:
    """On the test split, from the record of a run."""
    return float(json.loads((run / "record.json").read_text(encoding="utf-8"))["metrics"]["accuracy"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("text-runs"), help="folder of the runs")
    parser.add_argument("--quick", action="store_true", help="a few steps, no twin: seconds, and no evidence")
    arguments = parser.parse_args()
    base, tuned, twin = (arguments.output / name for name in ("pretrained", "finetuned", "from-scratch"))
    flags = QUICK if arguments.quick else USUAL
    weft("pretrain", "pydocs", "--model", "gmlp_text_tiny", *flags["pretrain"], "--output", str(base))
    weft("finetune", str(base), "pydocs", *flags["finetune"], "--output", str(tuned))
    print(f"pre-trained, then fine-tuned: accuracy {accuracy(tuned):.3f}")
    if not arguments.quick:
        weft("train", "pydocs", "--model", "gmlp_text_tiny", *flags["train"], "--output", str(twin))
        print(f"from scratch:                 accuracy {accuracy(twin):.3f}")


if __name__ == "__main__":
    main()
