"""How long a training step takes here: measured on a run that leaves nothing behind."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from weft.studies.engine.data_facts import data_of
from weft.training.config import AskedPrecision, Precision
from weft.training.loop.display import Silent
from weft.training.run import lifecycle, probe, rehearsal
from weft.training.run.context import Run
from weft.training.run.distributed import join
from weft.training.run.inputs import open_inputs
from weft.training.run.kinds import AnyConfig
from weft.training.storage.run_folder import RunFolder

WORTH = 1.1  # times as fast as float32 must a narrower format be, to be worth its rounding
FORMAT_SECONDS = 20.0  # to find out whether one works, once a machine
MEASURE_SECONDS = 0.6  # of steps for a choice of schedule: enough for a ratio within some percent


def step_seconds(config: AnyConfig, threads: int) -> float:
    """Mean seconds of a training step on so many threads, measured for a moment; nothing is kept."""
    with trial_run(config, threads) as run:
        return median_step(run, MEASURE_SECONDS, run.plan.precision)


def run_seconds(config: AnyConfig, threads: int, duration: float) -> tuple[float, float]:
    """Seconds of a training step and of an evaluation on the validation split, measured for a `duration`."""
    with trial_run(config, threads) as run:
        return median_step(run, duration, run.plan.precision), batch_seconds(run) * len(run.validation or ())


def pace(
    config: AnyConfig, threads: int, duration: float, narrow: tuple[Precision, ...] = ()
) -> tuple[float, float, float, AskedPrecision, float]:
    """Seconds of a training step, and of evaluations on the validation and on the test split; the format in which a
    step is fastest, float32 or one of the narrow ones that work here (auto, if none was to be tried); and the seconds
    of evaluating validation once more in float32, in which final figures are."""
    with trial_run(config, threads) as run:
        steps = {run.plan.precision: median_step(run, duration, run.plan.precision)}
        for precision in narrow:
            answer = rehearsal.try_format(precision, "cpu", net=run.core, within=FORMAT_SECONDS)
            if answer.works and answer.ratio < 1:
                steps[precision] = median_step(run, duration, precision)
        best = min(steps, key=lambda precision: steps[precision] * (1 if precision == "float32" else WORTH))
        run.team.use(best)
        each = final = batch_seconds(run, duration)
        if best != "float32":
            run.team.use("float32")
            final = batch_seconds(run, duration)
        chosen = len(run.validation or ())
        tested = -(-len(data_of(config)[0].splits["test"]) // config.optimisation.batch)
        again = final * chosen if best != "float32" else 0.0
        return steps[best], each * chosen, final * tested, best if narrow else "auto", again


def memory_needed(config: AnyConfig, threads: int) -> int:
    """Bytes that a run will take at its peak, predicted from two tiny batches."""
    with trial_run(config, threads) as run:
        return probe.predicted_memory(run)


def batch_seconds(run: Run, within: float = math.inf) -> float:
    """Seconds of evaluating one batch; the first one pays for allocation, and is enough where it takes too long."""
    first = probe.timed(lambda: probe.evaluate_once(run))
    return first if first > within else min(first, probe.timed(lambda: probe.evaluate_once(run)))


@contextmanager
def trial_run(config: AnyConfig, threads: int) -> Iterator[Run]:
    """A run that leaves nothing behind, for timing."""
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as path:
        inputs = open_inputs(config, None, data_of(config))
        team = join("cpu", "auto")
        run = lifecycle.assemble(RunFolder(Path(path)), config, None, team, inputs, Silent())
        torch.set_num_threads(threads)
        yield run


def median_step(run: Run, duration: float, precision: Precision) -> float:
    """Median over groups of steps, so that a moment's disturbance does not count; where two steps take as long, the
    second one."""
    started = time.perf_counter()
    times = [probe.mean_step(run, precision, steps=1, skipped=1)]
    while (left := started + duration - time.perf_counter()) > 0:
        times.append(probe.mean_step(run, precision, steps=4, skipped=1, within=left))
    return float(np.median(times[1:] or times))
