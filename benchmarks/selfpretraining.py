"""Does pre-training on the task's own text pay? From scratch against pre-trained and fine-tuned, at equal total time.

    python benchmarks/selfpretraining.py SST2_FOLDER [--minutes 6] [--model bert_tiny] [--output runs/selfpretraining]

Both candidates have the same network, vocabulary and total time. One trains on the labels all the time; the other gives
a share of it to masked-language modelling of the training sentences alone, without labels, and the rest to the labels.
Three seeds; reported on `validation`. The same command goes on after a kill. Wanted: a lead of at least one point.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from weft.data.config import TransformConfig
from weft.data.corpus.config import CorpusConfig, TokenizingConfig
from weft.training.config import DurationConfig, ExecutionConfig, OptimisationConfig, RunConfig
from weft.training.finetuning.config import FinetuneConfig, ThawingConfig
from weft.training.inference.evaluate import evaluate_run
from weft.training.pretraining.config import PretrainConfig
from weft.training.run import lifecycle
from weft.training.run.kinds import AnyConfig

WORDS, LENGTH, BATCH = 4096, 64, 128
SEQUENCES = 32  # of 64 packed tokens in a batch of pre-training: many small steps learn more in minutes
SPLIT = "validation"


def run_one(config: AnyConfig, folder: Path) -> dict[str, Any]:
    """The record of a run, which is started, resumed, or there already."""
    started = (folder / "run.yaml").is_file()
    outcome = lifecycle.resume(folder) if started else lifecycle.start(config, folder)
    if outcome.record is None:
        raise SystemExit(f"interrupted; the same command goes on with {folder}")
    return outcome.record


def duration(minutes: float, steps: int | None) -> DurationConfig:
    return DurationConfig(steps=steps) if steps else DurationConfig(time=f"{round(60 * minutes)}s")


def scratch(asked: argparse.Namespace, seed: int) -> RunConfig:
    return RunConfig(
        source=str(asked.data), model=asked.model, network={"drop_rate": 0.1}, seed=seed,
        transform=TransformConfig(max_length=LENGTH, vocab_size=WORDS),
        optimisation=OptimisationConfig(batch_size=BATCH, lr=1e-3, weight_decay=0.05),
        duration=duration(asked.minutes, asked.steps[0]),
        execution=ExecutionConfig(compile=False, threads=asked.threads),
    )  # fmt: skip


def pretraining(asked: argparse.Namespace, seed: int) -> PretrainConfig:
    """The sentences of the training split alone, without their labels."""
    return PretrainConfig(
        source=str(asked.data), model=asked.model, network={"drop_rate": 0.1}, seed=seed,
        reading=CorpusConfig(split=("train",), val_fraction=0.005, test_fraction=0.005),
        transform=TokenizingConfig(max_length=LENGTH, vocab_size=WORDS),
        optimisation=OptimisationConfig(batch_size=SEQUENCES, lr=2e-3, weight_decay=0.01),
        duration=duration(asked.minutes * asked.share, asked.steps[1]),
        execution=ExecutionConfig(compile=False, threads=asked.threads),
    )  # fmt: skip


def finetuning(asked: argparse.Namespace, seed: int, start: Path) -> FinetuneConfig:
    return FinetuneConfig(
        source=str(asked.data), start=str(start), seed=seed, test_split=SPLIT,
        transform=TransformConfig(max_length=LENGTH),
        optimisation=OptimisationConfig(batch_size=BATCH, lr=asked.rate, weight_decay=0.05, sched="linear"),
        duration=duration(asked.minutes * (1 - asked.share), asked.steps[2]), thawing=ThawingConfig(layer_decay=1.0),
        execution=ExecutionConfig(compile=False, threads=asked.threads),
    )  # fmt: skip


def one_seed(asked: argparse.Namespace, seed: int) -> dict[str, float]:
    """Accuracy of both candidates on the same split, and the perplexity that pre-training ended with."""
    folder = asked.output / f"seed{seed}"
    alone = run_one(scratch(asked, seed), folder / "scratch")
    pretrained = run_one(pretraining(asked, seed), folder / "pretrained")
    finetuned = run_one(finetuning(asked, seed, folder / "pretrained"), folder / "finetuned")
    found = {
        "scratch": evaluate_run(folder / "scratch", split=SPLIT)["accuracy"],
        "finetuned": finetuned["metrics"]["accuracy"],
        "perplexity": pretrained["metrics"]["perplexity"],
        "scratch_seconds": alone["cpu_seconds"],
        "finetuned_seconds": pretrained["cpu_seconds"] + finetuned["cpu_seconds"],
    }
    print(f"seed {seed}: " + ", ".join(f"{name} {value:.4g}" for name, value in found.items()), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--minutes", type=float, default=6.0, help="of a candidate, pre-training included")
    parser.add_argument("--share", type=float, default=0.5, help="of the time that pre-training gets")
    parser.add_argument("--rate", type=float, default=1e-3, help="of fine-tuning: these networks are small")
    parser.add_argument(
        "--steps", type=int, nargs=3, default=(None, None, None), metavar=("SCRATCH", "PRETRAIN", "FINETUNE"),
        help="in place of minutes, on a machine with other work; the table has the processor time of both candidates",
    )  # fmt: skip
    parser.add_argument("--model", default="bert_tiny")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--output", type=Path, default=Path("runs/selfpretraining"))
    asked = parser.parse_args()
    found = [one_seed(asked, seed) for seed in range(asked.seeds)]
    print("\n| candidate | processor seconds of its loops | accuracy on validation, % |\n|---|---|---|")
    for candidate in ("scratch", "finetuned"):
        values = 100 * np.array([seed[candidate] for seed in found])
        spread = f" ± {values.std(ddof=1):.2f}" if len(values) > 1 else ""
        taken = np.mean([seed[f"{candidate}_seconds"] for seed in found])
        print(f"| {candidate} | {taken:.0f} | {values.mean():.2f}{spread} |")
    lead = [seed["finetuned"] - seed["scratch"] for seed in found]
    print(f"\nlead of pre-training: {100 * np.mean(lead):+.2f} points over {len(lead)} seeds")


if __name__ == "__main__":
    main()
