"""How long an experiment takes and what it costs: said before it starts, and held against what it took.

At the scales that run here every candidate is timed on this machine. For the published shapes the work is counted, in
multiply-adds of the closed forms, and set against what one accelerator does.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from weft.disk import mark, write_json
from weft.networks.config import TextTokensConfig
from weft.networks.measure.cost import total_macs
from weft.report.columns import duration
from weft.studies.engine.study import read_stored
from weft.studies.experiments.text_tables.design import ENCODER, Experiment, pretraining_parameters
from weft.studies.experiments.text_tables.scales import ExperimentScale

FILE = "experiment.json"
FORMAT = 1
MASKED = 0.15  # of the tokens, at which alone words are predicted
ACCELERATOR = 312e12 * 0.4  # operations a second: an A100 in bf16, at the share of its peak that such runs reach
PRICE = 2.0  # of an hour of it


@dataclass(frozen=True)
class Prediction:
    """What was measured before the first run and decides the rest; a study that goes on finds it again."""

    experiment: str
    scale: str
    asked: dict[str, Any]  # what else was asked for, which must not change in one folder
    steps: int
    seconds: dict[str, dict[str, float]]  # candidate, part -> seconds of one run
    workers: int
    threads: int
    price_per_hour: float
    tasks: dict[str, str] = field(default_factory=dict)  # name -> source
    format: int = FORMAT

    def total(self, seeds: int) -> float:
        """Seconds of all runs, one after the other."""
        return sum(repeats(row, seeds) * sum(parts.values()) for row, parts in self.seconds.items())

    def sentence(self, seeds: int) -> str:
        """The prediction in words."""
        work = self.total(seeds)
        runs = sum(repeats(row, seeds) * len(parts) for row, parts in self.seconds.items())
        side = f"{self.workers} side by side on {self.threads} thread{'s' * (self.threads > 1)} each"
        way = side if self.workers > 1 else f"one after the other on {self.threads} thread{'s' * (self.threads > 1)}"
        wall = work / self.workers
        return (
            f"predicted: {duration(wall)} for {runs} runs, {way}, cost {wall / 3600 * self.price_per_hour:.3f} at "
            f"{self.price_per_hour:g} an hour"
        )

    def save(self, folder: Path) -> None:
        mark(folder)
        write_json(folder / FILE, asdict(self))


def repeats(row: str, seeds: int) -> int:
    """Runs of a candidate: the encoder that others stand on is trained once."""
    return 1 if row == ENCODER else seeds


def read_prediction(folder: Path) -> Prediction | None:
    """What was predicted for the study in a folder, or None where there is none."""
    path = folder / FILE
    return read_stored(path, Prediction, "remove it to measure anew") if path.is_file() else None


def prediction_held(prediction: Prediction, taken: dict[str, dict[str, list[float]]]) -> str:
    """How the prediction compares to the finished runs: candidate, part -> seconds of each."""
    runs = [(prediction.seconds[row][part], took) for row, parts in taken.items() for part, took in parts.items()
            if part in prediction.seconds.get(row, {})]  # fmt: skip
    count = sum(len(took) for _, took in runs)
    if not count:
        return "No run has finished yet."
    predicted = sum(seconds * len(took) for seconds, took in runs)
    actual = sum(sum(took) for _, took in runs)
    cost = actual / prediction.workers / 3600 * prediction.price_per_hour
    return (
        f"The {count} finished runs were predicted to take {duration(predicted)} and took {duration(actual)} "
        f"({100 * (actual / predicted - 1):+.0f} %), cost {cost:.3f}."
    ).replace("-", "−")


# The published shapes, which are counted and not run.


def operations(config: TextTokensConfig, scale: ExperimentScale) -> float:
    """Multiplications and additions of pre-training: forward, and twice as many backward."""
    words = MASKED * scale.length * (config.dim**2 + config.dim * config.vocab_size)
    return 2 * 3 * (total_macs(config.replaced(num_classes=0)) + words) * scale.batch * (scale.steps or 0)


def plan_lines(experiment: Experiment, scale: ExperimentScale) -> list[str]:
    """A line for every candidate: its size, and what its pre-training takes on one accelerator."""
    lines = []
    for candidate in experiment.candidates(scale):
        if not candidate.deep:
            continue
        config = candidate.config(scale)
        size = f"{candidate.name}: {config.depth} layers, {pretraining_parameters(config):,} parameters"
        if candidate.start == "pretrained":
            hours = operations(config, scale) / ACCELERATOR / 3600
            size += f", {scale.steps:,} steps of {scale.batch} × {scale.length} tokens, {hours:,.0f} hours a seed"
        lines.append(size)
    return lines


def accelerator_hours(experiment: Experiment, scale: ExperimentScale, seeds: int) -> float:
    """Hours of one accelerator for all pre-training runs."""
    trained = [candidate for candidate in experiment.candidates(scale) if candidate.start == "pretrained"]
    return seeds * sum(operations(candidate.config(scale), scale) for candidate in trained) / ACCELERATOR / 3600


def needs(experiment: Experiment, scale: ExperimentScale, seeds: int) -> str:
    """What the published scale would need, in a sentence."""
    hours = accelerator_hours(experiment, scale, seeds)
    if not hours:
        return "BERT-base as --encoder, SST-2 and the whole of MNLI as --tasks, and some hours of an A100 for each seed"
    return (
        f"about {hours:,.0f} hours of an A100 for {seeds} seeds (cost {hours * PRICE:,.0f} at {PRICE:g} an hour), "
        f"{hours / 24 / 64:,.1f} days on 64 of them"
    )
