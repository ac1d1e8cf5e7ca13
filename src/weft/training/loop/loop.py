"""The training loop: `train` is the whole of it, `advance` and `update` are the step that it repeats.

Everything depends on the step number and the state alone, never on the clock (but for the number of steps where a
time was asked for, which is stored), so that a run that is killed and resumed takes the same course as one that is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from weft.data.batch.loader import Batch
from weft.nn.noise import example_noise
from weft.training.loop.divergence import NormProbe, Norms, TrainingIssue
from weft.training.loop.events import conclude, evaluate, explain, log, revise, roll_back, save, waiting
from weft.training.loop.progress import Progress
from weft.training.optim.optimisers import clip_gradients, rate
from weft.training.run.context import Run
from weft.training.run.distributed import Scaling


def train(run: Run, progress: Progress, interrupted: Callable[[], bool]) -> bool:
    """Train to the plan's last step. True when done, False when interrupted; the state is saved either way."""
    wall, cpu = time.perf_counter() - progress.seconds, time.process_time() - progress.cpu_seconds
    looked = progress.seconds
    while progress.step < run.plan.steps and not stalled(run, progress):
        for batch in waiting(run.train.range(progress.step, run.plan.steps), progress):
            trouble = advance(run, progress, batch)
            if trouble is not None:
                progress.seconds = time.perf_counter() - wall
                roll_back(run, progress, trouble)
                break  # the other batches of this range follow the steps that were undone
            if run.plan.due_evaluation(progress.step):
                evaluate(run, progress)
            progress.seconds, progress.cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
            stopping, enough = run.team.anyone(interrupted()), stalled(run, progress)
            if stopping or enough or run.plan.due_checkpoint(progress.step):
                save(run, progress)
            if stopping:
                return False
            if enough and progress.step < run.plan.steps:
                run.display.say(f"ends at step {progress.step:,}: none was better than step {progress.best.step:,}")
            if enough:
                break
            limited = run.plan.limit is not None  # the clocks of ranks differ
            if limited and run.team.anyone(run.plan.due_revision(progress.step, progress.seconds, looked)):
                looked = progress.seconds
                if revise(run, progress):
                    break
    conclude(run, progress, rate_at(run, progress, progress.step - 1))
    return True


def rate_at(run: Run, progress: Progress, step: int) -> float:
    """The learning rate at a step."""
    return run.plan.lr * progress.rate_scale * share_of_peak(run, step)


def share_of_peak(run: Run, step: int) -> float:
    """The learning rate at a step, as a share of its peak."""
    plan = run.plan
    return rate(run.config.optimisation.sched, plan.schedule_step(step), plan.schedule_length, plan.warmup)


def stalled(run: Run, progress: Progress) -> bool:
    """Whether evaluations have been no better for as long as the plan waits."""
    patience = run.plan.stop_after
    return patience is not None and progress.best.step > 0 and progress.step - progress.best.step >= patience


def advance(run: Run, progress: Progress, batch: Batch) -> TrainingIssue | None:
    """One step: set the rate, update the weights, keep the books. Returns what went wrong, if anything."""
    plan, step = run.plan, progress.step
    lr = rate_at(run, progress, step)
    for group in run.optimiser.param_groups:
        group["lr"] = lr * group.get("share", 1.0)
        thaw(group, step / plan.steps_per_epoch)
    logging = plan.due_log(step + 1)
    loss, norms, sound = update(run, batch, step, progress.scaling, measure=logging)
    progress.step += 1
    if not sound:
        return explain(run, progress, batch, "not a number", norms)
    progress.loss_sum = progress.loss_sum + loss
    progress.guess_sum = progress.guess_sum + chance(run, batch)
    progress.loss_count += 1
    return log(run, progress, batch, lr, norms) if logging else None


def chance(run: Run, batch: Batch) -> Tensor:
    """This rank's share of the loss of a batch if its answers did not depend on the inputs."""
    targets = batch.targets.to(run.team.device)
    return run.objective.chance(targets, run.objective.count(targets, batch.size, run.team.sum))


def thaw(group: dict[str, Any], epoch: float) -> None:
    """Let the parameters of a group move from its epoch `thaw` on; before it, no gradient is computed for them."""
    if group.get("thaw"):
        for parameter in group["params"]:
            parameter.requires_grad_(group["thaw"] <= epoch)


def update(run: Run, batch: Batch, step: int, scaling: Scaling, measure: bool = False) -> tuple[Tensor, Norms, bool]:
    """The gradient of a batch, micro-batch by micro-batch, and the optimiser's step unless it is not finite.

    Returns this rank's share of the loss, the norms if they were to be measured, and whether all was finite (or
    overflowed in fp16 only, which a smaller scale of the loss will mend).
    """
    if not run.net.training:  # to say it to every layer takes as long as a small one
        run.net.train()
    device, objective = run.team.device, run.objective
    count = objective.count(batch.targets.to(device), batch.size, run.team.sum)
    parts = micro_batches(batch, run.config.optimisation.grad_accum_steps)
    total = torch.zeros((), device=device)
    for number, part in enumerate(parts):
        more = number + 1 < len(parts)
        with run.team.accumulating(run.net, more), example_noise(run.config.seed, step, part.index.to(device)):
            with run.team.autocast():
                outputs = run.net(**{name: value.to(device) for name, value in part.inputs.items()})
            share = objective.share(outputs, part.targets.to(device), count)
            run.team.backward(share * scaling.factor)
        total += share.detach()
    scaling.undo(run.core)
    probe = NormProbe(run.core) if measure else None
    optimisation = run.config.optimisation
    norm = clip_gradients(run.core, optimisation.clip_mode, optimisation.clip_grad)
    # on a GPU a look at the norm waits for the device, so there it is only taken with the measurements
    sound = bool(torch.isfinite(norm)) if measure or scaling.on or device.type == "cpu" else True
    left_out = scaling.overflowed(sound)
    if sound:
        with run.team.autocast():  # Muon's products are of the run's format too
            run.optimiser.step()
        if run.ema is not None:
            run.ema.update(run.core, step)
    norms = probe.after() if probe is not None and not left_out else {}
    run.optimiser.zero_grad(set_to_none=True)
    return total, norms, sound or left_out


def micro_batches(batch: Batch, parts: int) -> list[Batch]:
    """A batch cut into `parts` of nearly equal size; empty ones are left out, but one always remains."""
    if parts == 1:
        return [batch]
    edges = [len(batch.index) * number // parts for number in range(parts + 1)]
    cuts = [slice(a, b) for a, b in pairwise(edges) if b > a] or [slice(0, 0)]
    return [
        Batch({name: x[cut] for name, x in batch.inputs.items()}, batch.targets[cut], batch.index[cut], batch.size)
        for cut in cuts
    ]
