"""What a study asks of its workers, a plain function of plain arguments each.

A function is sent by reference, so the study names it without loading what it needs: torch is imported where it runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.errors import WeftError
from weft.networks.config import NetworkConfig
from weft.studies.compare.candidates import Candidate, Facts, make_candidates
from weft.training.config import AskedPrecision, Precision, RunConfig
from weft.training.finetuning.config import FinetuneConfig
from weft.training.run.kinds import AnyConfig
from weft.training.run.plan import Plan, Timing

if TYPE_CHECKING:
    from weft.studies.experiments.speed_tables.measure_row import MeasuredRow
    from weft.studies.experiments.speed_tables.published_rows import SpeedRow
    from weft.studies.results.inference_speed import Inference


def look(config: AnyConfig) -> Facts:
    """What candidates must know of the data that a run reads."""
    from weft.studies.engine.data_facts import facts_of

    return facts_of(config)


def step_seconds(config: AnyConfig, threads: int) -> float:
    """Seconds of a training step on so many threads."""
    from weft.studies.engine import step_timing

    return step_timing.step_seconds(config, threads)


def run_seconds(config: AnyConfig, threads: int, duration: float) -> tuple[float, float]:
    """Seconds of a training step and of an evaluation, measured for a `duration`."""
    from weft.studies.engine import step_timing

    return step_timing.run_seconds(config, threads, duration)


def memory_needed(config: AnyConfig, threads: int) -> int:
    """Bytes that a run will take at its peak."""
    from weft.studies.engine import step_timing

    return step_timing.memory_needed(config, threads)


def pace(
    config: AnyConfig, threads: int, duration: float, narrow: tuple[Precision, ...] = ()
) -> tuple[float, float, float, AskedPrecision, float]:
    """What a `Pace` is made of, in float32 or in a narrow format in which a step is faster."""
    from weft.studies.engine import step_timing

    return step_timing.pace(config, threads, duration, narrow)


def candidates(
    facts: Facts, models: str, match: str, budget: float | None, with_controls: bool, classical: bool, quick: bool
) -> tuple[list[Candidate], list[str]]:
    """The candidates of a comparison, and what is to be told of those that are left out."""
    notes: list[str] = []
    return make_candidates(facts, models, match, budget, with_controls, classical, notes, quick), notes


def probe_seconds(
    config: RunConfig, start: str, threads: int, fitting: float | None = None, again: float = math.inf
) -> tuple[float, float]:
    """Seconds that a trained network takes for the features of one row, and the regressions on them for a training
    row, unless these are known. A few texts that take less than `again` are timed with more of each length."""
    import torch

    from weft.data.open.splits import MemorySplit
    from weft.studies.engine.data_facts import source_of
    from weft.training.features.baseline import probe_seconds

    torch.set_num_threads(threads)
    source = source_of(config.source, config.reading)
    if not isinstance(source.splits["train"], MemorySplit):
        raise WeftError(f"{source.name} is streamed, and features are kept for sources in memory; raise --memory")
    return probe_seconds(config, start, source, fitting, again)


def embed(config: FinetuneConfig, threads: int, encoders: int) -> tuple[int, ...]:
    """Keep the embeddings of all texts that runs on the network which `config` starts from, one of several `encoders`,
    will read; of which blocks they are."""
    import io
    from contextlib import redirect_stderr

    import torch

    from weft.studies.engine.data_facts import data_of
    from weft.training.finetuning.prepare import embed_rows

    torch.set_num_threads(threads)
    with redirect_stderr(io.StringIO()):  # how far it is would be drawn over the table of the study
        return embed_rows(config, data_of(config)[0], encoders)


def trained_side(start: str) -> int:
    """The side of the images that a network was trained on."""
    from weft.data.transform.transforms import ImageTransform
    from weft.training.finetuning.start import read_start

    transform = read_start(start).transform
    if not isinstance(transform, ImageTransform):
        raise WeftError("it is no network for images")
    return transform.size


def weights_digest(start: str) -> str:
    """What tells a trained network from others: a digest of its weights and, where there is one, of its tokenizer."""
    from weft.training.finetuning.start import read_start

    return read_start(start).fingerprint


def baseline_seconds(config: RunConfig, threads: int) -> float:
    """Seconds that the classical baseline takes for a training row."""
    import torch

    from weft.studies.engine.data_facts import data_of
    from weft.training.baseline import seconds_per_row
    from weft.training.features.linear import one_thread

    torch.set_num_threads(threads)
    with one_thread():
        return seconds_per_row(*data_of(config))


def image_side(config: RunConfig) -> int | None:
    """The side that a source's images would have if nothing was said about it; None for other data."""
    from weft.studies.engine.data_facts import natural_side

    return natural_side(config)


def decoding_seconds(config: RunConfig) -> float:
    """Seconds that reading and shrinking one image takes."""
    from weft.studies.engine import data_facts

    return data_facts.decoding_seconds(config)


def decoding_ahead(config: RunConfig, allowed: float) -> tuple[int, float]:
    """Images that are decoded before the first run begins, and about the seconds that it takes, if it may be more than
    is allowed."""
    from weft.studies.engine import data_facts

    return data_facts.decoding_ahead(config, allowed)


def run_one(config: AnyConfig, path: Path, known: Plan | Timing | None = None) -> str:
    """Start or continue the run in `path`: finished, failed, interrupted, or held by another process."""
    from weft.studies.engine import run_one

    return run_one.run_one(config, path, known)


def inference_speed(path: Path) -> Inference:
    """How fast the network of a run is in use."""
    from weft.studies.results.inference_speed import measure_inference

    return measure_inference(path)


def examples_for_page(config: RunConfig, rows: list[int]) -> list[dict[str, str]]:
    """Examples of the test split for a page: pictures or words, and where they are from."""
    from weft.studies.results.error_examples import read_examples

    return read_examples(config, rows)


def accuracy_on(path: Path, split: str) -> float:
    """Accuracy of a run's network on a split of its own source."""
    from weft.studies.experiments.e11_training_issues import measure_accuracy

    return measure_accuracy(path, split)


def speed_plan(row: SpeedRow, scale: str) -> list[str]:
    """What a row of e2 will need, in sentences."""
    from weft.studies.experiments.speed_tables.measure_row import plan_row

    return plan_row(row, scale)


def speed_row(row: SpeedRow, scale: str, repeats: int | None) -> MeasuredRow:
    """How fast a row of e2 is on one core."""
    from weft.studies.experiments.speed_tables.measure_row import REPEATS, measure_row

    return measure_row(row, scale, repeats or REPEATS)


def few_shot_rows(source: str, shots: tuple[int, ...]) -> None:
    """Refuse a source with a class of fewer training rows than few-shot figures need."""
    from weft.studies.experiments.transfer_tables.few_shot import require_rows

    require_rows(source, shots)


def few_shot(run: Path, source: str, side: int, shots: int) -> list[float]:
    """For every test row of a source the share of draws in which few rows a class told it right."""
    from weft.studies.experiments.transfer_tables.few_shot import few_shot_scores

    return few_shot_scores(run, source, side, shots)


def sized_network(config: RunConfig) -> NetworkConfig:
    """The named network of a run, sized to its data."""
    from weft.studies.engine.data_facts import data_of
    from weft.training.run.inputs import size_network

    return size_network(config, *data_of(config))


WORDS: dict[Callable[..., Any], str] = {
    look: "looking at the data",
    sized_network: "looking at the data",
    candidates: "sizing the networks",
    step_seconds: "timing a step",
    run_seconds: "timing a step",
    pace: "timing a step",
    memory_needed: "predicting the memory of a run",
    probe_seconds: "trying a trained network",
    trained_side: "reading a trained network",
    weights_digest: "reading a trained network",
    embed: "embedding texts",
    baseline_seconds: "trying the classical baseline",
    image_side: "looking at the images",
    decoding_seconds: "looking at the images",
    decoding_ahead: "looking at the images",
    inference_speed: "measuring the speed in use",
    examples_for_page: "reading the mistakes",
    accuracy_on: "evaluating a network",
    speed_plan: "laying a network out",
    speed_row: "timing a network",
    few_shot_rows: "looking at the data",
    few_shot: "learning from few rows",
}
"""What a worker was doing, for the sentence about one that died."""
