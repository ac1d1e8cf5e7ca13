"""Dead and saturated units: on how many inputs the slope of each unit's activation is as good as zero.

A unit is flat on an input where the slope g′(z) is below a twentieth of the largest that g has; hardly any gradient
passes it then. It is dead if it is flat on all inputs seen, and saturated if on 95 % of them or more. A unit is a
channel, or a hidden unit of a layer; each position of an image and each real token of a text counts as an input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from weft.insight.layers import watching
from weft.insight.subject import Subject
from weft.networks.mixer import TokenMLP
from weft.networks.resnet import BasicBlock, Bottleneck
from weft.nn.activations import ACTIVATIONS, Elementwise, Function
from weft.nn.norm import BatchNorm1d, BatchNorm2d

FLAT, OFTEN = 0.05, 0.95
MODULES: dict[type[nn.Module], str] = {
    nn.ReLU: "relu",
    nn.ReLU6: "relu6",
    nn.SiLU: "silu",
    nn.Sigmoid: "logistic",
    nn.Tanh: "tanh",
    nn.ELU: "elu",
    nn.Softplus: "softplus",
}


@dataclass
class Units:
    """The units of one layer, counted batch by batch: `flat` (units,) is on how many inputs each was flat."""

    act: str
    flat: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))
    seen: int = 0

    def add(self, z: Tensor, slope: Function) -> None:
        """Count pre-activations (inputs, units)."""
        flat = (slope(z).abs() <= FLAT * largest_slope(self.act)).sum(0)
        self.flat = flat if not self.seen else self.flat + flat
        self.seen += len(z)

    @property
    def dead(self) -> float:
        """Share of the units that were flat on all inputs."""
        return float((self.flat == self.seen).double().mean())

    @property
    def saturated(self) -> float:
        """Share of the units that were flat on most inputs, but not dead."""
        return float((self.flat >= OFTEN * self.seen).double().mean()) - self.dead

    @property
    def flatness(self) -> float:
        """Mean share of inputs on which a unit was flat."""
        return float(self.flat.double().mean() / self.seen)


def largest_slope(act: str) -> float:
    """The largest size of a function's slope, by a look at a fine grid."""
    return float(ACTIVATIONS[act].derivative(torch.linspace(-8, 8, 4001)).abs().max())


def activation_of(module: nn.Module) -> tuple[str, Function] | None:
    """Name and slope of the activation that a module is; None if it is none. PReLU's slope is its own, as learned."""
    if isinstance(module, nn.PReLU):
        weight = module.weight.detach()
        return "prelu", lambda z: torch.where(z > 0, torch.ones_like(z), weight.expand_as(z))
    name = MODULES.get(type(module))
    if isinstance(module, nn.GELU):
        name = "gelu_tanh" if module.approximate == "tanh" else "gelu"
    if isinstance(module, Elementwise):
        name = module.name
    return None if name is None else (name, ACTIVATIONS[name].derivative)


def watch_units(subject: Subject, examples: int) -> dict[str, Units]:
    """The units of every activation of a network over `examples` inputs, in the order in which they are computed."""
    found: dict[str, Units] = {}
    mask: list[Tensor | None] = [None]

    def see(name: str, z: Tensor, axis: int, act: str, slope: Function) -> None:
        found.setdefault(name, Units(act)).add(by_unit(z.detach(), axis, mask[0]), slope)

    with torch.no_grad(), watching_activations(subject.network, see):
        for batch in subject.batches(examples):
            mask[0] = batch.inputs.get("mask")
            subject.network(**batch.inputs)
    return found


def by_unit(z: Tensor, axis: int, mask: Tensor | None) -> Tensor:
    """Pre-activations as (inputs, units), without the padding of texts."""
    if axis == -1 and z.ndim == 3 and mask is not None and mask.shape == z.shape[:2]:
        return z[mask]
    return z.movedim(axis, -1).flatten(0, -2)


See = Callable[[str, Tensor, int, str, Function], None]


@contextmanager
def watching_activations(network: nn.Module, see: See) -> Iterator[None]:
    """Call `see(name, z, axis of the units, activation, slope)` for each activation while the network runs."""
    with ExitStack() as stack:
        for name, module in network.named_modules():
            known = activation_of(module)
            if known is not None:
                axis = unit_axis(network, name)
                stack.callback(module.register_forward_pre_hook(before(see, name, axis, *known)).remove)
        slope = ACTIVATIONS["relu"].derivative
        stack.enter_context(watching(dict(rectified(network)), lambda name, z: see(name, z, 1, "relu", slope)))
        yield


def before(see: See, name: str, axis: int, act: str, slope: Function) -> Callable[[nn.Module, Any], None]:
    """A hook that looks at what an activation is about to be applied to."""

    def hook(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        z = inputs[0]
        see(name, z, 1 if z.ndim == 4 else axis, act, slope)

    return hook


def unit_axis(network: nn.Module, name: str) -> int:
    """Where the units of an activation lie: last in token networks, second after convolutions and over tokens."""
    parent = network.get_submodule(name.rpartition(".")[0])
    convolves = isinstance(parent, nn.Sequential) and any(isinstance(child, nn.Conv1d) for child in parent)
    return 1 if convolves or isinstance(parent, TokenMLP) else -1


def rectified(network: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """ResNet's layers that are followed by a ReLU which is no module: the norms inside its blocks, and the blocks."""
    for name, module in network.named_modules():
        if isinstance(module, BasicBlock | Bottleneck):
            yield name, module
            for key, norm in module.named_children():
                if isinstance(norm, BatchNorm2d) and norm is not module.last_norm:
                    yield f"{name}.{key}", norm
        elif isinstance(module, BatchNorm1d | BatchNorm2d) and name.endswith("trunk.bn1"):
            yield name, module
