"""What happens along the way: points of the curve, evaluations, checkpoints, and going back when it went wrong."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from weft.data.batch.loader import Batch
from weft.errors import WeftError
from weft.nn.noise import example_noise
from weft.training.loop.divergence import Kind, Norms, TrainingIssue, concerned
from weft.training.loop.progress import Best, Progress, capture, restore, weights_of
from weft.training.run.context import Run
from weft.training.run.distributed import Distributed, SingleProcess, scaling_for, whole
from weft.training.run.plan import Plan
from weft.training.storage.checkpoints import Checkpoint
from weft.training.storage.run_folder import RunFolder

ROLLBACKS = 3
SMALLER = 0.25  # factor on the rate at each roll-back: three of them span the two decades of usual mistakes


def waiting(batches: Iterable[Batch], progress: Progress) -> Iterator[Batch]:
    """The same batches; adds up the time that the loop waits for them."""
    iterator = iter(batches)
    while True:
        started = time.perf_counter()
        batch = next(iterator, None)
        progress.waited += time.perf_counter() - started
        if batch is None:
            return
        yield batch


def log(run: Run, progress: Progress, batch: Batch, lr: float, norms: Norms) -> TrainingIssue | None:
    """Add a point to the curve and judge the mean loss since the last one."""
    batches = max(progress.loss_count, 1)
    loss, chance = (total / batches for total in totals(run, progress))
    progress.loss_sum, progress.guess_sum = torch.zeros_like(progress.loss_sum), torch.zeros_like(progress.guess_sum)
    progress.loss_count = 0
    progress.loss, progress.lr = loss, lr
    event = {
        "kind": "train",
        "step": progress.step,
        "epoch": progress.step / run.plan.steps_per_epoch,
        "loss": loss,
        "lr": lr,
        "seconds": progress.seconds,
        **norms,
    }
    add(run, progress, event)
    evidence = batches * run.config.optimisation.batch / run.objective.spread
    wrong = progress.watch.judge(
        loss, run.objective.guess, progress.step < run.plan.patience, chance=chance, evidence=evidence
    )
    hopeless = run.store is None or len(progress.rollbacks) >= ROLLBACKS
    if wrong is None or (wrong == "never left chance" and hopeless):
        return None
    return explain(run, progress, batch, wrong, norms, loss)


def totals(run: Run, progress: Progress) -> list[float]:
    """Over all ranks: the batch losses since the last point of the curve, and those of a guess on the same batches."""
    sums = [total.to(run.team.device) for total in (progress.loss_sum, progress.guess_sum)]
    return [float(total) for total in run.team.sum(torch.stack(sums))]


def add(run: Run, progress: Progress, event: dict[str, Any]) -> None:
    """Write an event down and show it."""
    run.journal.add(event)
    progress.events = run.journal.count
    run.display.point(progress, event)


def evaluate(run: Run, progress: Progress) -> None:
    """Measure on the validation split, with the averaged weights where there are any, and remember the best."""
    progress.evaluated = progress.step
    if run.validation is None:
        return
    started = time.perf_counter()
    with weights_of(run.core, run.ema.average if run.ema else None):
        outputs, targets = outputs_of(run.net, run.validation, run.team)
        metric = run.objective.headline(outputs, targets)
        loss = run.objective.mean_loss(outputs, targets)
        score = -metric if run.objective.lower_is_better else metric
        if progress.best.beaten_by(score, loss):
            weights = {name: whole(value) for name, value in run.core.state_dict().items()}
            answers = (outputs, targets) if run.team.precision == "float32" else None
            progress.best = Best(progress.step, score, loss, weights, answers)
    event = {
        "kind": "evaluation",
        "step": progress.step,
        "epoch": progress.step / run.plan.steps_per_epoch,
        "train_loss": progress.loss,
        "validation_loss": loss,
        "validation_metric": metric,
        "lr": progress.lr,
        "seconds": progress.seconds,
    }
    add(run, progress, event)
    progress.evaluating += time.perf_counter() - started


@torch.no_grad()
def outputs_of(net: nn.Module, batches: Iterable[Any], team: Distributed | None = None) -> tuple[Tensor, Tensor]:
    """Outputs (n, K) and targets (n,) of every example of a split, once each, on the CPU, the same on every rank."""
    team = team or SingleProcess()
    net.eval()
    outputs, targets = [], []
    for batch in batches:
        inputs = {name: value.to(team.device) for name, value in batch.inputs.items()}
        with team.autocast():
            local = net(**inputs).float()
        outputs.append(team.concatenate(local).cpu())
        targets.append(team.concatenate(batch.targets.to(team.device)).cpu())
    return torch.cat(outputs), torch.cat(targets)


def revise(run: Run, progress: Progress) -> bool:
    """Where a time was asked for, look at the clock and plan for as many steps as still fit; whether that changes them.

    The plan is stored with each change: a run that is resumed takes its course from there.
    """
    stepping = progress.seconds - progress.evaluating - progress.saving - progress.undone
    plan = run.plan.revision(progress.step, progress.seconds, stepping, progress.evaluating)
    changed = ("steps", "planned", "revised", "limit", "evaluation")
    found = run.team.share({name: getattr(plan, name) for name in changed})
    before = run.plan.steps
    follow(run, replace(run.plan, **found))
    return run.plan.steps != before


def follow(run: Run, plan: Plan) -> None:
    """Go on by another plan, which is stored and shown."""
    run.plan = plan
    if run.team.rank == 0 and run.store is not None:
        RunFolder(run.store.folder.parent).write_asked(run.config, run.plan)
    run.display.replan(run.plan)


def conclude(run: Run, progress: Progress, lr: float) -> None:
    """Where the time was over before the last step of the plan, what is due after a last step: a point of the curve, an
    evaluation and a checkpoint. There is no time to go back from what is wrong now."""
    started = time.perf_counter()
    if run.plan.limit is None or progress.step < run.plan.steps or progress.evaluated == progress.step:
        return
    if progress.loss_count:
        log(run, progress, run.train[progress.step - 1], lr, {})
    evaluate(run, progress)
    progress.seconds += time.perf_counter() - started
    save(run, progress)


def save(run: Run, progress: Progress) -> None:
    """Write a checkpoint. Kept are the last two that were due, this one, and the first until something was learnt."""
    if run.store is None:
        return
    started = time.perf_counter()
    sums = totals(run, progress)
    checkpoint = capture(progress, run.core, run.optimiser, run.ema)
    checkpoint.numbers["loss_sum"], checkpoint.numbers["guess_sum"] = sums
    if run.team.rank == 0:
        run.store.save(checkpoint)
        due = [step for step in run.store.steps() if run.plan.due_checkpoint(step)]
        run.store.prune({*due[-2:], progress.step, *([] if progress.watch.beats_constant_guess else due[:1])})
    progress.saving += time.perf_counter() - started


def resume(run: Run, checkpoint: Checkpoint) -> Progress:
    """Put the run where the checkpoint was taken."""
    restore(checkpoint, run.core, run.optimiser, run.ema)
    progress = Progress.from_checkpoint(checkpoint, run.objective.guess)
    if progress.step == 0:  # stored before the number format was chosen
        progress.scaling = scaling_for(run.plan.precision)
    share = 1.0 if run.team.rank == 0 else 0.0  # sums over ranks were stored; one rank carries them on
    progress.loss_sum = (progress.loss_sum * share).to(run.team.device)
    progress.guess_sum = (progress.guess_sum * share).to(run.team.device)
    return progress


def roll_back(run: Run, progress: Progress, trouble: TrainingIssue) -> None:
    """Return to the last good state with a smaller rate; gives up after ROLLBACKS times.

    Only checkpoints at steps of the plan count, not those of an interruption: the course must not depend on those.
    """
    started = time.perf_counter()
    if len(progress.rollbacks) >= ROLLBACKS or run.store is None:
        raise TrainingFailed(trouble, progress)
    sound = {step for step in run.store.steps() if run.plan.due_checkpoint(step) and step < trouble.step}
    if trouble.kind == "never left chance":
        sound = {min(sound)}
    checkpoint = run.store.latest(among=sound)
    if checkpoint is None:
        raise TrainingFailed(trouble, progress)
    spent = progress.seconds
    kept = (progress.rollbacks, progress.rate_scale * SMALLER, spent, progress.cpu_seconds, progress.events)
    past = resume(run, checkpoint)
    if run.team.rank == 0:  # steps undone by the roll-back; resuming must not find them
        run.store.prune({step for step in run.store.steps() if step <= past.step})
    if run.plan.limit is not None:
        follow(run, run.plan.gone_back(past.step))
    vars(progress).update(vars(past))
    progress.rollbacks, progress.rate_scale, progress.seconds, progress.cpu_seconds, progress.events = kept
    progress.undone += spent - past.seconds + time.perf_counter() - started
    event = {"kind": "rollback", "step": trouble.step, "to": past.step, "why": str(trouble), "rate_scale": kept[1]}
    progress.rollbacks = [*kept[0], event]
    add(run, progress, event)
    run.display.say(f"{trouble}; back to step {past.step} with {progress.rate_scale:g} of the rate")


class TrainingFailed(WeftError):
    """Training went wrong more often than it may be rolled back."""

    def __init__(self, trouble: TrainingIssue, progress: Progress) -> None:
        tried = f"after {len(progress.rollbacks)} roll-backs" if progress.rollbacks else "with nothing to go back to"
        super().__init__(f"{trouble}, {tried}; use a smaller --lr, --lr auto, or a longer --warmup-epochs")


def explain(
    run: Run, progress: Progress, batch: Batch, kind: Kind, norms: Norms, loss: float = float("nan")
) -> TrainingIssue:
    """Name the layer concerned: for a NaN the first whose output is not finite, else by the norms."""
    layer = first_not_finite(run, progress, batch) if kind == "not a number" else None
    return TrainingIssue(kind, progress.step, run.team.share(layer or concerned(kind, norms)), loss)


@torch.no_grad()
def first_not_finite(run: Run, progress: Progress, batch: Batch) -> str | None:
    """The first layer, in order of computation, that makes something other than finite numbers of this batch."""
    found: list[str] = []

    def look(name: str, output: Any) -> None:
        if isinstance(output, Tensor) and not found and not bool(torch.isfinite(output).all()):
            found.append(name)

    leaves = [(name, layer) for name, layer in run.core.named_modules() if not list(layer.children())]
    handles = [layer.register_forward_hook(lambda _, __, out, name=name: look(name, out)) for name, layer in leaves]
    device = run.team.device
    try:
        with example_noise(run.config.seed, progress.step - 1, batch.index.to(device)), run.team.autocast():
            run.net(**{name: value.to(device) for name, value in batch.inputs.items()})
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else first_bad_parameter(run.core)


def first_bad_parameter(net: nn.Module) -> str | None:
    """The first parameter with a value that is not finite."""
    return next((name for name, p in net.named_parameters() if not bool(torch.isfinite(p).all())), None)
