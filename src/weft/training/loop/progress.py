"""Where a run stands: all that a resumed run needs beyond its configuration and plan, and the way to disk and back.

Tensors are stored whole, by the name of their parameter, so that a checkpoint of one process can be resumed by two,
sharded or not, and the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from weft.disk import Damaged, validated
from weft.training.loop.divergence import DivergenceMonitor
from weft.training.run.distributed import Scaling, fill, is_sharded, whole
from weft.training.storage.checkpoints import Checkpoint
from weft.training.storage.metrics_log import Count, Number


@dataclass
class Best:
    """The best evaluation on the validation split so far; a metric that is to be low is kept negated."""

    step: int = -1
    metric: float = -math.inf
    loss: float = math.inf
    weights: dict[str, Tensor] = field(default_factory=dict)
    answers: tuple[Tensor, Tensor] | None = None
    """outputs and targets of that evaluation, where it was made by this process and in float32"""

    def beaten_by(self, metric: float, loss: float) -> bool:
        """A higher metric wins; at equal metric the lower loss."""
        return (metric, -loss) > (self.metric, -self.loss)


@dataclass
class BestNumbers:
    """Of the best evaluation, what a manifest keeps."""

    step: int
    metric: Number
    loss: Number


@dataclass
class Numbers:
    """Of the progress, what a manifest keeps."""

    watch: DivergenceMonitor
    scaling: Scaling
    step: Count
    rate_scale: Number
    rollbacks: list[dict[str, Any]]
    best: BestNumbers
    loss_sum: Number
    loss_count: Count
    loss: Number
    lr: Number
    seconds: Number
    cpu_seconds: Number
    waited: Number
    saving: Number
    events: Count
    evaluating: Number = 0.0
    evaluated: Count = 0
    undone: Number = 0.0
    guess_sum: Number | None = None


@dataclass
class Progress:
    """The part of a run's state that moves."""

    watch: DivergenceMonitor = field(default_factory=DivergenceMonitor)
    scaling: Scaling = field(default_factory=Scaling)
    step: int = 0
    """updates made"""
    rate_scale: float = 1.0
    """product of the reductions by roll-backs"""
    rollbacks: list[dict[str, Any]] = field(default_factory=list)
    best: Best = field(default_factory=Best)
    loss_sum: Tensor = field(default_factory=lambda: torch.zeros((), dtype=torch.float64))
    """this rank's part of the batch losses since the last point of the curve; a tensor, so that a GPU need not wait"""
    guess_sum: Tensor = field(default_factory=lambda: torch.zeros((), dtype=torch.float64))
    """what the answer that does not look at the inputs would have added to `loss_sum`"""
    loss_count: int = 0
    loss: float = math.nan
    """at the last point of the curve"""
    lr: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    waited: float = 0.0
    """seconds spent waiting for batches"""
    saving: float = 0.0
    """seconds spent writing checkpoints"""
    evaluating: float = 0.0
    """seconds spent on evaluations"""
    evaluated: int = 0
    """updates made before the last evaluation"""
    undone: float = 0.0
    """seconds spent on what roll-backs have undone, and on them"""
    events: int = 0
    """events in the journal"""

    @classmethod
    def begin(cls, device: torch.device) -> Progress:
        """That of a run before its first step; its sums lie where the losses will, since ranks add them up there."""
        loss_sum, guess_sum = torch.zeros(2, dtype=torch.float64, device=device)
        return cls(loss_sum=loss_sum, guess_sum=guess_sum)

    def numbers(self) -> dict[str, Any]:
        """Everything but the weights of the best evaluation, as JSON can hold it."""
        apart = {"watch", "scaling", "best", "loss_sum", "guess_sum"}
        plain = {name: value for name, value in vars(self).items() if name not in apart}
        best = {"step": self.best.step, "metric": self.best.metric, "loss": self.best.loss}
        parts = {"watch": asdict(self.watch), "scaling": asdict(self.scaling), "best": best}
        return {**plain, "loss_sum": float(self.loss_sum), "guess_sum": float(self.guess_sum), **parts}

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint, guess: float = 0.0) -> Progress:
        """The progress that `numbers` and the checkpoint's tensors describe; `guess` is the loss of a guess."""
        numbers = vars(validated(Numbers, checkpoint.numbers, f"the checkpoint of step {checkpoint.step}"))
        stored = vars(numbers.pop("best"))
        best = Best(**stored, weights=section(checkpoint.tensors, "best."))
        loss_sum = torch.tensor(numbers.pop("loss_sum"), dtype=torch.float64)
        guessed = numbers.pop("guess_sum")  # an older version stored none
        guess_sum = torch.tensor(guess * numbers["loss_count"] if guessed is None else guessed, dtype=torch.float64)
        return cls(loss_sum=loss_sum, guess_sum=guess_sum, best=best, **numbers)


def capture(progress: Progress, net: nn.Module, optimiser: Optimizer, ema: MovingAverage | None) -> Checkpoint:
    """A checkpoint of the present state. Every rank must call it: sharded tensors are gathered."""
    names = {id(parameter): name for name, parameter in net.named_parameters()}
    tensors = {f"model.{name}": whole(value) for name, value in net.state_dict().items()}
    for parameter, state in optimiser.state.items():
        for key, value in state.items():
            tensors[f"optimiser.{names[id(parameter)]}.{key}"] = whole(value)
    if ema is not None:
        tensors |= {f"ema.{name}": whole(value) for name, value in ema.average.items()}
    tensors |= {f"best.{name}": value for name, value in progress.best.weights.items()}
    return Checkpoint(progress.step, tensors, progress.numbers())


def restore(checkpoint: Checkpoint, net: nn.Module, optimiser: Optimizer, ema: MovingAverage | None) -> None:
    """Put weights, optimiser and average back to what they were when the checkpoint was captured."""
    require_fit(checkpoint, net, ema)
    fill_all(net.state_dict(), section(checkpoint.tensors, "model."))
    if ema is not None:
        fill_all(ema.average, section(checkpoint.tensors, "ema."))
    stored = section(checkpoint.tensors, "optimiser.")
    optimiser.state.clear()
    for name, parameter in net.named_parameters():
        state = {key: like(parameter, value) for key, value in section(stored, f"{name}.").items() if "." not in key}
        if state:
            optimiser.state[parameter] = state


def require_fit(checkpoint: Checkpoint, net: nn.Module, ema: MovingAverage | None) -> None:
    """Refuse a checkpoint of another network or optimiser before anything of it is used."""
    own = {f"model.{name}": value.shape for name, value in net.state_dict().items()}
    own |= {f"ema.{name}": value.shape for name, value in (ema.average if ema else {}).items()}
    stored = {name: value.shape for name, value in checkpoint.tensors.items()}
    wrong = sorted(name for name, shape in own.items() if stored.get(name) != shape)
    states = section(checkpoint.tensors, "optimiser.")
    for name, parameter in net.named_parameters():
        for key, value in section(states, f"{name}.").items():
            if "." not in key and value.numel() > 1 and value.shape != parameter.shape:
                wrong.append(f"optimiser.{name}.{key}")
    best = section(checkpoint.tensors, "best.")
    wrong += [f"best.{n}" for n, v in net.state_dict().items() if best and (n not in best or best[n].shape != v.shape)]
    if wrong:
        raise Damaged(
            f"the checkpoint of step {checkpoint.step} is not one of this network ({wrong[0]} differs); restore it, "
            "or start the run again in another folder"
        )


def fill_all(targets: dict[str, Tensor], contents: dict[str, Tensor]) -> None:
    """Copy every content into the target of the same name."""
    for name, target in targets.items():
        fill(target, contents[name])


@contextmanager
def weights_of(net: nn.Module, weights: dict[str, Tensor] | None) -> Iterator[None]:
    """Lend `net` other weights (a moving average, the best so far); None leaves its own."""
    if weights is None:
        yield
        return
    own = {name: value.clone() for name, value in net.state_dict().items()}
    fill_all(net.state_dict(), weights)
    try:
        yield
    finally:
        fill_all(net.state_dict(), own)


def like(parameter: Tensor, value: Tensor) -> Tensor:
    """A fresh tensor with the content of `value`, where `parameter` is; sharded as that is, if it has its shape."""
    if value.shape != parameter.shape:  # a counter; fused kernels want it beside the parameter
        return value.clone().to(parameter.device)
    fresh = torch.empty_like(parameter, dtype=value.dtype) if is_sharded(parameter) else value.new_empty(value.shape)
    fresh = fresh.detach().to(parameter.device)
    fill(fresh, value)
    return fresh


def section(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names start with `prefix`, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


# ---- A moving average of the weights: smoother than the weights, and what is evaluated and kept when asked for.


class MovingAverage:
    """average ← decay · average + (1 − decay) · weights, of parameters and float buffers.

    The decay is min(decay, (1 + step) / (10 + step)): early on the average follows closely, so that it does not
    remember the initial weights. Integer buffers are copied.
    """

    def __init__(self, net: nn.Module, decay: float) -> None:
        self.decay = decay
        self.average = {name: value.detach().clone() for name, value in net.state_dict().items()}

    @torch.no_grad()
    def update(self, net: nn.Module, step: int) -> None:
        """Take in the weights after the update of `step`."""
        weight = 1 - min(self.decay, (1 + step) / (10 + step))
        current = net.state_dict()
        floats = [name for name, value in self.average.items() if value.is_floating_point()]
        averages: list[Tensor] = [self.average[name] for name in floats]
        torch._foreach_lerp_(averages, [current[name] for name in floats], weight)
        for name in self.average.keys() - set(floats):
            self.average[name].copy_(current[name])
