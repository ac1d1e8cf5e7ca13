"""Optimisers and learning-rate schedules by name, and gradients cut down before a step.

torch's own optimisers where they are good; LAMB, which it lacks, and Muon in float32 are written here: torch.optim.Muon
orthogonalises one matrix at a time in bf16, which takes most of a step on a CPU without bf16 units. The one here stacks
matrices of one shape, and computes in the format of the run. A schedule is a pure function of the step, so that a
resumed run needs no state of it.
"""

from __future__ import annotations

import inspect
import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from weft.errors import WeftError

Groups = list[dict[str, Any]]

USUAL_RATE = {
    "gd": 0.1,
    "sgd": 0.1,
    "momentum": 0.05,
    "adagrad": 0.01,
    "adam": 1e-3,
    "adamw": 1e-3,
    "lamb": 5e-3,
    "muon": 1e-3,
}

ONECYCLE_WARMUP = 0.3  # share of the run that rises (Smith & Topin 2018)
ONECYCLE_START = 1 / 25
FINAL = 1e-3  # the decaying shapes end at this share of the peak: the last epoch still moves a little

SHARDED = {"adamw", "sgd"}  # seen to be right on sharded tensors; LAMB and Muon need whole matrices


def create_optimiser(name: str, groups: Groups, lr: float, net: torch.nn.Module | None = None) -> Optimizer:
    """The optimiser called `name` over `groups`, as `net.parameter_groups(weight_decay)` returns them.

    `gd` and `sgd` are one update rule; `gd` is the name for a batch of the whole set. `fused` does all tensors in one
    kernel. Muon needs `net` to tell the
    hidden matrices, which it orthogonalises, from embeddings and head, which it leaves to AdamW.
    """
    if name in {"gd", "sgd"}:
        return unguarded(torch.optim.SGD)(groups, lr=lr, fused=True)
    if name == "momentum":
        return unguarded(torch.optim.SGD)(groups, lr=lr, momentum=0.9, nesterov=True, fused=True)
    if name == "adagrad":
        return unguarded(torch.optim.Adagrad)(groups, lr=lr, fused=True)
    if name == "adam":  # decay enters the gradient, as in the paper
        return unguarded(torch.optim.Adam)(groups, lr=lr, fused=True)
    if name == "adamw":
        return unguarded(torch.optim.AdamW)(groups, lr=lr, fused=True)
    if name == "lamb":
        return Lamb(groups, lr=lr)
    if name == "muon":
        return Muon(split_for_muon(groups, net), lr=lr)
    raise WeftError(f"there is no optimiser {name!r}; known: {', '.join(USUAL_RATE)}")


class Unguarded(Optimizer):
    """torch's optimiser without its provisions for being compiled, which import the compiler, for a second and a half,
    as soon as one is made; the numbers are the same."""

    add_param_group = inspect.unwrap(Optimizer.add_param_group)
    zero_grad = inspect.unwrap(Optimizer.zero_grad)
    state_dict = inspect.unwrap(Optimizer.state_dict)
    load_state_dict = inspect.unwrap(Optimizer.load_state_dict)


@cache
def unguarded(kind: type[Optimizer]) -> Callable[..., Optimizer]:
    """One of torch's own optimisers without these provisions."""
    step = torch.no_grad()(inspect.unwrap(kind.step))
    return cast(Callable[..., Optimizer], type(kind.__name__, (Unguarded, kind), {"step": step}))


class Lamb(Unguarded):
    """LAMB (You et al. 2020, algorithm 2): Adam's direction, scaled per tensor to the tensor's own norm.

    Tensors without decay (norms, biases) take the plain Adam step, as the authors' code does.
    """

    def __init__(
        self, params: Iterable[Any], lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-6
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One update of every tensor that has a gradient."""
        for group in self.param_groups:
            weights = [p for p in group["params"] if p.grad is not None]
            if not weights:
                continue
            update = self._adam_direction(group, weights)
            if group["weight_decay"]:
                torch._foreach_add_(update, weights, alpha=group["weight_decay"])
                torch._foreach_mul_(update, trust_ratios(weights, update))
            torch._foreach_add_(weights, update, alpha=-group["lr"])

    def _adam_direction(self, group: dict[str, Any], weights: list[Tensor]) -> list[Tensor]:
        states = [self._state_of(p) for p in weights]
        first = [state["exp_avg"] for state in states]
        second = [state["exp_avg_sq"] for state in states]
        step = advance(states)
        beta1, beta2 = group["betas"]
        gradients = gradients_of(weights)
        torch._foreach_lerp_(first, gradients, 1 - beta1)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, gradients, gradients, value=1 - beta2)
        scale = torch._foreach_div(second, 1 - beta2**step)
        torch._foreach_sqrt_(scale)
        torch._foreach_add_(scale, group["eps"])
        update = torch._foreach_div(first, 1 - beta1**step)
        torch._foreach_div_(update, scale)
        return list(update)

    def _state_of(self, parameter: Tensor) -> dict[str, Any]:
        state: dict[str, Any] = self.state[parameter]
        if not state:
            state["step"] = torch.zeros(())
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        return state


def trust_ratios(weights: list[Tensor], update: list[Tensor]) -> list[Tensor]:
    """‖w‖ / ‖update‖ per tensor, 1 where either is zero: () each."""
    ratios = []
    for weight_norm, update_norm in zip(torch._foreach_norm(weights), torch._foreach_norm(update), strict=True):
        usable = (weight_norm > 0) & (update_norm > 0)
        ratios.append(torch.where(usable, weight_norm / update_norm, torch.ones_like(weight_norm)))
    return ratios


def gradients_of(weights: list[Tensor]) -> list[Tensor]:
    """The gradients of tensors that are known to have one."""
    return [p.grad for p in weights if p.grad is not None]


def advance(states: list[dict[str, Any]]) -> int:
    """Count one more step in every state (they move together) and return the number."""
    step = int(states[0]["step"].item()) + 1
    for state in states:
        state["step"].fill_(step)
    return step


class Muon(Unguarded):
    """Muon (Jordan et al. 2024): momentum made orthogonal by a Newton–Schulz iteration, for hidden matrices.

    Groups with `muon=True` hold matrices (rows, columns) or kernels (out, in, …), flattened to matrices; each update
    is scaled to the root mean square of AdamW's (0.2 √max(rows, columns), Liu et al. 2025), so that one rate and one
    decay serve both kinds of group. Other groups are updated by AdamW.
    """

    def __init__(self, params: Iterable[Any], lr: float, momentum: float = 0.95) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": 0.0, "muon": False})
        others = [group for group in self.param_groups if not group["muon"]]
        self._adamw = unguarded(torch.optim.AdamW)(others, lr=lr, fused=True) if others else None
        if self._adamw is not None:  # one state and one set of groups: what is saved here is what AdamW uses
            self._adamw.state = self.state
            self._adamw.param_groups = others

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One update of every tensor that has a gradient."""
        for group in self.param_groups:
            if group["muon"]:
                for matrices in by_shape(p for p in group["params"] if p.grad is not None):
                    self._update(group, matrices)
        if self._adamw is not None:
            self._adamw.step()

    def _update(self, group: dict[str, Any], weights: list[Tensor]) -> None:
        """Update tensors of one shape with one batched iteration."""
        gradients = gradients_of(weights)
        buffers = [self._momentum_of(p) for p in weights]
        torch._foreach_lerp_(buffers, gradients, 1 - group["momentum"])
        nesterov = torch._foreach_lerp(gradients, buffers, group["momentum"])
        stacked = torch.stack([matrix.flatten(1) for matrix in nesterov])
        scale = 0.2 * max(stacked.shape[1:]) ** 0.5
        update = orthogonalise(stacked)
        torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
        moves = [matrix.view_as(p) for matrix, p in zip(update.unbind(), weights, strict=True)]
        torch._foreach_add_(weights, moves, alpha=-group["lr"] * scale)

    def _momentum_of(self, parameter: Tensor) -> Tensor:
        state = self.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        buffer: Tensor = state["momentum_buffer"]
        return buffer

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load, and share the new state with the inner AdamW."""
        super().load_state_dict(state_dict)
        if self._adamw is not None:
            self._adamw.state = self.state
            self._adamw.param_groups = [group for group in self.param_groups if not group["muon"]]


NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # quintic whose fixed points surround 1 (Jordan et al. 2024)


def orthogonalise(matrices: Tensor, steps: int = 5) -> Tensor:
    """Nearest half-orthogonal matrices, singular values brought to about 1: (n, rows, columns) -> the same.

    Under autocast its products are of the narrow format, as in the paper, whose iteration is made for bf16.
    """
    a, b, c = NEWTON_SCHULZ
    wide = matrices.shape[1] <= matrices.shape[2]
    x = matrices if wide else matrices.mT
    x = x / (torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return (x if wide else x.mT).to(matrices.dtype)


def by_shape(parameters: Iterable[Tensor]) -> list[list[Tensor]]:
    """Tensors grouped by shape, in order of first appearance."""
    groups: dict[torch.Size, list[Tensor]] = defaultdict(list)
    for parameter in parameters:
        groups[parameter.shape].append(parameter)
    return list(groups.values())


def split_for_muon(groups: Groups, net: torch.nn.Module | None) -> Groups:
    """Cut the groups into hidden matrices, for Muon, and the rest (vectors, first and last layer), for AdamW.

    Matrices are looked for in groups of weights, or else in the first group: positions and tokens are tables.
    """
    edges = edge_parameters(net) if net is not None else set()
    result: Groups = []
    for number, group in enumerate(groups):
        weights = group.get("weights", number == 0)
        hidden = [p for p in group["params"] if weights and p.ndim >= 2 and id(p) not in edges]
        chosen = {id(p) for p in hidden}
        rest = [p for p in group["params"] if id(p) not in chosen]
        result += [{**group, "params": hidden, "muon": True}] if hidden else []
        result += [{**group, "params": rest, "muon": False}] if rest else []
    return result


def edge_parameters(net: torch.nn.Module) -> set[int]:
    """Ids of the parameters of the classifier, of embedding tables and of the first layer that has a matrix; of a
    network that does not say which its classifier is, also of the last one."""
    matrices = [p for p in net.parameters() if p.ndim >= 2]
    edges = {id(p) for p in (matrices[:1] if hasattr(net, "head") else [*matrices[:1], *matrices[-1:]])}
    edges |= {id(p) for module in net.modules() if isinstance(module, torch.nn.Embedding) for p in module.parameters()}
    heads = [getattr(net, name, None) for name in ("head", "head_dist")]
    return edges | {id(p) for head in heads if isinstance(head, torch.nn.Module) for p in head.parameters()}


def rate(name: str, step: float, total: int, warmup: int) -> float:
    """The share of the peak rate at `step` of `total` steps, `warmup` of which rise linearly; between 0 and 1."""
    if name == "onecycle":
        return onecycle(step / max(total, 1))
    if step < warmup:
        return (step + 1) / (warmup + 1)
    done = (step - warmup) / max(total - warmup, 1)
    return SHAPES[name](min(done, 1.0))


def cosine(done: float) -> float:
    """Half a cosine from 1 to FINAL."""
    return FINAL + (1 - FINAL) * (1 + math.cos(math.pi * done)) / 2


def linear(done: float) -> float:
    """A straight line from 1 to FINAL."""
    return 1 - (1 - FINAL) * done


def constant(done: float) -> float:
    """No change."""
    return 1.0


def onecycle(done: float) -> float:
    """A cosine up from ONECYCLE_START to 1 and another down to FINAL; brings its own warm-up."""
    if done < ONECYCLE_WARMUP:
        return 1 - (1 - ONECYCLE_START) * (1 + math.cos(math.pi * done / ONECYCLE_WARMUP)) / 2
    return cosine((min(done, 1.0) - ONECYCLE_WARMUP) / (1 - ONECYCLE_WARMUP))


SHAPES: dict[str, Callable[[float], float]] = {"cosine": cosine, "linear": linear, "constant": constant}


# ---- Gradients cut down before a step: all of them by their common norm, or each unit's by the norm of its weights.
#
# Adaptive clipping (Brock et al. 2021, §4) is what lets networks without norms train at large batches: the gradient G_i
# of unit i, a row of a matrix or a filter, is scaled to at most λ ‖W_i‖, as a step should change a weight by no more
# than a share of it. ‖W_i‖ counts as at least 1e-3, so that weights which start at zero can move. The head is spared.

ClipMode = Literal["norm", "agc"]
USUAL_LIMIT: dict[ClipMode, float] = {"norm": 1.0, "agc": 0.01}
SMALLEST_WEIGHT, SMALLEST_GRADIENT = 1e-3, 1e-6


def clip_gradients(network: nn.Module, mode: ClipMode = "norm", limit: float | None = None) -> Tensor:
    """Clip the gradients of a network and give their common norm as it was before; a limit of 0 clips nothing."""
    limit = USUAL_LIMIT[mode] if limit is None else limit
    if mode == "norm" or not limit:
        return nn.utils.clip_grad_norm_(network.parameters(), limit or math.inf, foreach=True)
    norm = nn.utils.clip_grad_norm_(network.parameters(), math.inf, foreach=True)
    head: Any = getattr(network, "head", None)
    spared = {id(parameter) for parameter in head.parameters()} if isinstance(head, nn.Module) else set()
    for parameter in network.parameters():
        if parameter.grad is not None and id(parameter) not in spared:
            clip_units(parameter, parameter.grad, limit)
    return norm


@torch.no_grad()
def clip_units(weight: Tensor, gradient: Tensor, limit: float) -> None:
    """Scale the gradient of each unit, in place, to at most `limit` times the norm of the unit's weights."""
    most = unit_norms(weight).clamp_(min=SMALLEST_WEIGHT).mul_(limit)
    norms = unit_norms(gradient)
    gradient.mul_(torch.where(norms < most, 1.0, most / norms.clamp(min=SMALLEST_GRADIENT)))


def unit_norms(x: Tensor) -> Tensor:
    """The norm of each row or filter, with axes kept; of a vector as a whole."""
    return x.norm() if x.ndim <= 1 else torch.linalg.vector_norm(x, dim=tuple(range(1, x.ndim)), keepdim=True)
