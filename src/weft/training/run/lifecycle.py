"""A run from beginning to end: prepare, plan, train, report; or go on where it stopped."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from weft import machine, supervision
from weft.data.read.cache import FILLING
from weft.disk import missing_folders
from weft.errors import WeftError
from weft.machine import Lock
from weft.networks.measure.cost import total_parameters
from weft.terminal import how_many
from weft.training import metrics
from weft.training.baseline import beside
from weft.training.finetuning.config import FinetuneConfig
from weft.training.learnt import draw_curves, overfitting, remark
from weft.training.loop import events
from weft.training.loop.display import Silent, choose_display, duration
from weft.training.loop.events import TrainingFailed, outputs_of
from weft.training.loop.loop import train
from weft.training.loop.progress import MovingAverage, Progress, weights_of
from weft.training.optim.optimisers import SHARDED, create_optimiser
from weft.training.pretraining.config import PretrainConfig
from weft.training.run import memory, probe, rehearsal
from weft.training.run.context import Display, Run
from weft.training.run.distributed import Distributed, join, scaling_for
from weft.training.run.inputs import LabelledInputs, RunInputs, open_inputs
from weft.training.run.kinds import AnyConfig
from weft.training.run.memory import gigabytes
from weft.training.run.plan import Plan, Timing
from weft.training.run.settings import shorter_epochs
from weft.training.storage import run_folder
from weft.training.storage.checkpoints import CheckpointStore
from weft.training.storage.metrics_log import Journal
from weft.training.storage.record import make_record
from weft.training.storage.run_folder import ENDING, TRAINING, RunFolder, discard_early

Places = dict[str, Any]  # `source` and `start` of a configuration


@dataclass
class Outcome:
    """How it ended: `record` is None when it was interrupted and is to be resumed."""

    folder: Path
    record: dict[str, Any] | None
    signal: int = 0
    fresh: bool = True
    """whether the work was done now, rather than found done"""

    def remarks(self) -> list[str]:
        """Sentences about what was learnt, or too much by heart, where there is something to say."""
        found = () if self.record is None else (remark(self.record), overfitting(self.record))
        return [sentence for sentence in found if sentence]


def start(
    config: AnyConfig,
    path: Path,
    display: Silent | None = None,
    opened: Any = None,
    known: Plan | Timing | None = None,
    began: float | None = None,
    baseline: bool = False,
    until: int | None = None,
) -> Outcome:
    """Begin a new run in `path`. `began` is when the command was called (perf_counter): `--time` counts from there;
    with `baseline`, a quick classical one stands in the record. `until` stops it at that step, as Ctrl-C would.

    A study of many runs saves work: `opened` is data that was read before, `known` a plan that was measured for a run
    that differs by its seed alone, or what was timed of such runs.
    """
    started = time.perf_counter() if began is None else began
    team = join(config.execution.device, config.execution.strategy)
    check_strategy(config)
    folder, made = RunFolder(path), missing_folders(path)
    lock = run_folder.create(path, config) if team.rank == 0 else None
    try:
        return run_in_folder(
            folder, config, team, display or choose_display(team.rank), started, opened, known, lock, baseline, until
        )
    except WeftError:
        if lock is not None and folder.plan() is None:  # refused before anything was trained: leave no trace
            discard_early(path, made)
        raise
    finally:
        if lock is not None:
            lock.release()


def resume(
    path: Path,
    display: Silent | None = None,
    execution: Any = None,
    opened: Any = None,
    moved: Places | None = None,
    baseline: bool = False,
    began: float | None = None,
) -> Outcome:
    """Continue the run in `path`; one that has ended is left as it is. `execution` may replace where it is computed.

    `moved` says where the `source`, or what fine-tuning has its `start` from, lies now; it must be the same still.
    `began` is as in `start`, for a run that has no plan yet.
    """
    started = time.perf_counter() if began is None else began
    folder = run_folder.open_run(path)
    config = folder.config()
    record = folder.record()
    if record is not None:
        return Outcome(path, record, fresh=False)
    config = replace(config, **(moved or {}), execution=execution or config.execution)
    team = join(config.execution.device, config.execution.strategy)
    check_strategy(config)
    lock = folder.lock(ENDING) if team.rank == 0 else None
    try:
        return run_in_folder(
            folder, config, team, display or choose_display(team.rank), started, opened, None, lock, baseline
        )
    finally:
        if lock is not None:
            lock.release()


def check_strategy(config: AnyConfig) -> None:
    if config.execution.strategy == "fsdp" and config.optimisation.optimiser not in SHARDED:
        raise WeftError(f"--opt {config.optimisation.optimiser} does not work with --strategy fsdp; use adamw or sgd")
    if config.execution.strategy == "fsdp" and config.optimisation.clip_mode == "agc":
        raise WeftError("--clip-mode agc needs whole weights, which --strategy fsdp cuts up; use --clip-mode norm")


def run_in_folder(
    folder: RunFolder,
    config: AnyConfig,
    team: Distributed,
    display: Silent,
    started: float,
    opened: Any,
    known: Plan | Timing | None,
    lock: Lock | None,
    baseline: bool,
    until: int | None = None,
) -> Outcome:
    """Everything between an open folder, on which the first process holds the `lock`, and its record."""

    def enter(phase: str) -> None:
        if lock is not None:
            lock.note(phase)

    supervision.concerns(folder.path)
    enter("reading the data")
    filled = FILLING.seconds
    inputs = open_inputs(config, folder.path, opened)
    config = inputs.config
    plan = folder.plan()
    if plan is not None:
        inputs.require(plan.fingerprint)
    run = assemble(folder, config, plan or (known if isinstance(known, Plan) else None), team, inputs, display)
    if run.plan.precision != "float32":
        rehearsal.require_format(run.plan.precision, team.device.type, run.core)
    enter("measuring before the first step")
    apart = config.duration.time and judged_on(config) != "validation"  # which is evaluated anyway
    tested = len(inputs.batches(judged_on(config), team.rank, team.world)) if apart else 0
    started += FILLING.seconds - filled  # what is made once for all runs is not charged to this one
    passed = team.share(time.perf_counter() - started)  # one clock: the others have waited for the first
    started = time.perf_counter() - passed
    run, progress = measure_plan(run, folder, started, tested, known, inputs) if plan is None else restore(run)
    announce(run, inputs, display)
    enter(TRAINING)
    return train_and_record(run, progress, folder, inputs, display, baseline, until)


def assemble(
    folder: RunFolder, config: AnyConfig, plan: Plan | None, team: Distributed, inputs: RunInputs, display: Silent
) -> Run:
    """The network, its optimiser and its batches, at step 0."""
    set_threads(plan.threads if plan else probe.threads_asked(config), team.world)  # batches may be features to compute
    loaders = {name: inputs.batches(name, team.rank, team.world) for name in ("train", "validation")}
    plan = plan or probe.draft(config, loaders["train"].steps_per_epoch, inputs.fingerprint)
    machine.keep_freed_memory()
    if team.device.type == "cpu" and trains_all(config):
        memory.require_room(inputs.network.family, total_parameters(inputs.network), probe.states(config))
    core = inputs.create()
    if team.rank == 0 and not (folder.path / "config.json").exists():
        inputs.save_transform(folder.path)
    net = team.place(core)
    team.use(plan.precision)
    groups = inputs.groups(core)
    return Run(
        config=config,
        plan=plan,
        team=team,
        core=core,
        net=net,
        optimiser=create_optimiser(config.optimisation.optimiser, groups, plan.lr, core),
        objective=inputs.objective,
        ema=MovingAverage(core, config.optimisation.model_ema_decay) if config.optimisation.model_ema_decay else None,
        train=loaders["train"],
        validation=loaders["validation"],
        store=CheckpointStore(folder.checkpoints),
        journal=Journal(None),
        display=display,
    )


def trains_all(config: AnyConfig) -> bool:
    """Whether this process keeps optimiser states of all weights."""
    frozen = isinstance(config, FinetuneConfig) and config.thawing.frozen
    return not frozen and config.execution.strategy != "fsdp"


def set_threads(threads: int, world: int) -> None:
    """Share the machine's threads among its processes; same count, same bits."""
    local = int(os.environ.get("LOCAL_WORLD_SIZE", world))
    torch.set_num_threads(max(1, threads // local))
    if torch.cuda.is_available():  # CPU kernels used here are deterministic; the switch costs a second of imports
        torch.use_deterministic_algorithms(True, warn_only=True)


def measure_plan(
    run: Run, folder: RunFolder, started: float, tested: int, known: Plan | Timing | None, inputs: RunInputs
) -> tuple[Run, Progress]:
    """Measure the plan, unless it is known, and store it: from here on the run can be resumed."""

    def judge(outputs: Tensor, targets: Tensor) -> None:
        if isinstance(inputs, LabelledInputs):  # what is not asked of the user's own metric, which may want many rows
            metrics.measure(
                inputs.objective.task, inputs.objective.answers(outputs), targets, len(inputs.source.classes)
            )
        else:
            inputs.measure(outputs, targets)
        inputs.judge(outputs, targets)

    if isinstance(known, Plan):
        plan = probe.adopt(run, known)
    elif known is not None and run.config.optimisation.lr != "auto":
        plan = probe.from_timing(run, known)
    else:
        plan = probe.measure(run, started, tested, judge)
    if run.team.rank == 0:
        folder.write_asked(run.config, plan)
    path = folder.path if run.team.rank == 0 else None
    run = replace(run, plan=plan, journal=Journal(path, 0, run.config.execution.tensorboard))
    run.team.use(plan.precision)
    return run, replace(Progress.begin(run.team.device), scaling=scaling_for(plan.precision))


def restore(run: Run) -> tuple[Run, Progress]:
    """Return to the newest sound checkpoint."""
    assert run.store is not None
    if run.plan.compile:
        run.core.compile()
    checkpoint = run.store.require()
    progress = events.resume(run, checkpoint)
    path = run.store.folder.parent if run.team.rank == 0 else None
    run.journal = Journal(path, progress.events, run.config.execution.tensorboard)
    run.display.say(f"resuming at step {progress.step} of {run.plan.steps}")
    return run, progress


def announce(run: Run, inputs: RunInputs, display: Silent) -> None:
    """Say what is about to happen: the probe's predictions and what the source decided."""
    plan, parameters = run.plan, sum(p.numel() for p in run.core.parameters())
    for note in [*inputs.notes, *cautions(run)]:
        display.say(note)
    epochs = plan.steps / plan.steps_per_epoch
    form = f"{plan.precision}{', compiled' if plan.compile else ''}, {how_many(plan.threads, 'thread')}"
    size = f"{parameters:,} parameters, {how_many(plan.steps, 'step')} ({how_many(epochs, 'epoch')})"
    display.say(f"{run.config.model}: {size}, rate {plan.lr:g}, {form}")
    display.say(
        f"predicted: {duration(plan.seconds)}, {gigabytes(plan.memory)}, cost {plan.cost:.4f} "
        f"at {run.config.execution.price_per_hour:g} an hour"
    )
    if plan.limit is not None and epochs < 1 and plan.revised == ():
        trained = isinstance(run.config, FinetuneConfig)
        remedy = shorter_epochs(inputs.network, epochs, run.config.optimisation.batch, trained)
        display.say(f"less than one epoch fits into the time{remedy}")
    display.begin(plan, run.config.optimisation.batch, run.objective.metric)


def cautions(run: Run) -> list[str]:
    """What a user might not expect of this configuration."""
    parts = run.config.optimisation.grad_accum_steps
    if parts == 1 or not any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in run.core.modules()):
        return []
    size = -(-run.config.optimisation.batch // parts)
    return [f"batch norm sees micro-batches of {size}: --grad-accum-steps {parts} is not the same as the whole batch"]


def classical(inputs: RunInputs, display: Display) -> dict[str, Any] | None:
    """The quick classical baseline of a supervised run."""
    if not isinstance(inputs, LabelledInputs):
        return None
    return beside(inputs.source, inputs.transform, inputs.config.objective.metric, display.say, inputs.judged_split)


def train_and_record(
    run: Run,
    progress: Progress,
    folder: RunFolder,
    inputs: RunInputs,
    display: Silent,
    baseline: bool = False,
    until: int | None = None,
) -> Outcome:
    """Train; then report, or leave a resumable folder behind."""

    def enough() -> bool:
        return signals.received() or (until is not None and progress.step >= until)

    with Signals() as signals:
        try:
            done = train(run, progress, enough)
        except TrainingFailed as failure:
            finish(run, progress, folder, inputs, {"status": "failed", "reason": str(failure)}, baseline)
            raise
        finally:
            display.end()
            run.journal.close()
    if not done:
        return Outcome(folder.path, None, signals.number)
    return Outcome(folder.path, finish(run, progress, folder, inputs, {"status": "finished"}, baseline))


def finish(
    run: Run, progress: Progress, folder: RunFolder, inputs: RunInputs, facts: dict[str, Any], baseline: bool = False
) -> dict[str, Any]:
    """Report the best weights on the test split, which is read here and nowhere else, and write what came out.

    The classical `baseline` comes last: nothing of the run waits for it, nor is its memory the run's.
    """
    began, best = time.perf_counter(), progress.best.weights or None
    run.team.use("float32")  # what is reported is what the stored weights do wherever they are loaded
    with weights_of(run.core, best):
        chosen_on = progress.best.answers
        if chosen_on is None and run.validation is not None:
            chosen_on = outputs_of(run.net, run.validation, run.team)
        split = judged_on(run.config)
        if split == "validation" and chosen_on is not None:
            outputs, targets = chosen_on
        else:
            outputs, targets = outputs_of(run.net, inputs.batches(split, run.team.rank, run.team.world), run.team)
    learnt = None if chosen_on is None else inputs.judge(*chosen_on)
    facts |= {
        **({} if learnt is None else {"learnt": learnt.as_dict(), "beats_constant_guess": learnt.learnt}),
        "metric": run.objective.metric,
        "metrics": inputs.measure(outputs, targets),
        "testing_seconds": time.perf_counter() - began,
        "source": inputs.described(),
        "parameters": sum(p.numel() for p in run.core.parameters()),
        "multiply_adds": inputs.macs,
    }
    record = make_record(run, progress, folder.path, facts)
    if run.team.rank == 0:
        inputs.keep(folder.path, best, outputs, targets)
        draw_curves(folder.path, record)
        folder.write_record(record)
        if baseline and (simple := classical(inputs, run.display)) is not None:
            record["baseline"] = simple
            folder.write_record(record)
    return record


def judged_on(config: AnyConfig) -> str:
    """The split of the final figures."""
    return "test" if isinstance(config, PretrainConfig) else config.objective.judged_on


class Signals:
    """Notes Ctrl-C and SIGTERM while a run trains, so that it saves at the next step; a second Ctrl-C stops at once."""

    def __init__(self) -> None:
        self.number = 0

    def received(self) -> bool:
        return self.number != 0

    def __enter__(self) -> Signals:
        self._before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            for number in self._before:
                signal.signal(number, self._note)
        except ValueError:  # not the main thread: there whoever owns it handles signals
            self._before = {}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.number and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.number = number
