"""Does a run give the same bits again? Some steps are repeated from a checkpoint, and the final weights evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from weft.errors import WeftError
from weft.training.inference.evaluate import evaluate_run
from weft.training.loop.display import Silent
from weft.training.loop.events import evaluate, resume
from weft.training.loop.loop import advance
from weft.training.loop.progress import Progress, capture
from weft.training.run.context import Run
from weft.training.run.distributed import join
from weft.training.run.inputs import open_inputs
from weft.training.run.lifecycle import assemble
from weft.training.storage.checkpoints import Checkpoint, CheckpointStore
from weft.training.storage.metrics_log import Event, Journal, read_events
from weft.training.storage.run_folder import RunFolder, open_run


@dataclass(frozen=True)
class Check:
    """One comparison."""

    what: str
    same: bool


class Recorder(Journal):
    """A journal in memory."""

    def __init__(self) -> None:
        super().__init__(None)
        self.events: list[Event] = []

    def add(self, event: Event) -> None:
        super().add(event)
        self.events.append(event)


def verify(path: Path, steps: int) -> Iterator[Check]:
    """Repeat at most `steps` steps and compare losses, norms and weights; then compare the record's metrics."""
    folder = open_run(path)
    record = folder.record()
    store = CheckpointStore(folder.checkpoints)
    yield from repeat(folder, store, steps)
    if record is not None and record["status"] == "finished":
        again = evaluate_run(path, batch_size=folder.config().optimisation.batch)
        for name, value in record["metrics"].items():
            yield Check(f"{name} on the test split", again.get(name) == value)


def repeat(folder: RunFolder, store: CheckpointStore, steps: int) -> Iterator[Check]:
    """The comparisons of the repeated steps."""
    plan = folder.plan()
    found = store.steps()
    if plan is None or len(found) < 2:
        raise WeftError(f"{folder.path} has not the two checkpoints that verifying needs; train it further")
    first, following = store.load(found[-2]), found[-1]
    last = min(first.step + steps, following)
    last = max(last, min(following, first.step + plan.log_every))  # at least one point of the curve
    run = reconstruct(folder)
    progress = resume(run, first)
    led_on, rate_scale = followed(read_events(folder.metrics), first.step)
    progress.rate_scale = rate_scale or progress.rate_scale
    recorder = Recorder()
    run = replace(run, journal=recorder)
    for batch in run.train.range(first.step, last):
        advance(run, progress, batch)
        if run.plan.due_evaluation(progress.step):
            evaluate(run, progress)
    written = [event for event in led_on if first.step < event["step"] <= last]
    for kind, name in (("train", "loss"), ("train", "weight_norm"), ("evaluation", "validation_loss")):
        pair = [[event.get(name) for event in events if event["kind"] == kind] for events in (written, recorder.events)]
        if pair[0]:
            yield Check(f"{name} at {len(pair[0])} points of steps {first.step} to {last}", pair[0] == pair[1])
    if last == following:
        yield same_state(run, progress, store.load(following))


def followed(events: list[Event], step: int) -> tuple[list[Event], float | None]:
    """The events of the course that went on from `step`, and its factor on the rate if a roll-back to there set one."""
    backs = [number for number, event in enumerate(events) if event["kind"] == "rollback" and event["to"] <= step]
    if not backs:
        return events, None
    back = events[backs[-1]]
    return events[backs[-1] + 1 :], back["rate_scale"] if back["to"] == step else None


def reconstruct(folder: RunFolder) -> Run:
    """The run as it was at step 0."""
    config, plan = folder.config(), folder.plan()
    team = join(config.execution.device, "auto")
    inputs = open_inputs(config, folder.path)
    assert plan is not None
    inputs.require(plan.fingerprint)
    run = assemble(folder, config, plan, team, inputs, Silent())
    if plan.compile:
        run.core.compile()
    return run


def same_state(run: Run, progress: Progress, stored: Checkpoint) -> Check:
    """Compare every tensor of the state with a stored checkpoint's."""
    now: dict[str, Any] = capture(progress, run.core, run.optimiser, run.ema).tensors
    names = sorted(stored.tensors.keys() | now.keys())
    differing = [n for n in names if not (n in now and n in stored.tensors and torch.equal(stored.tensors[n], now[n]))]
    named = f", first {differing[0]}" if differing else ""
    return Check(f"{len(stored.tensors)} tensors of the checkpoint at step {stored.step}{named}", not differing)
