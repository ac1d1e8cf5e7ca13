"""Which named network a bare file of weights belongs to, told by the names and shapes of its tensors.

A named size fits when every tensor of it is in the file, in its shape, and nothing is left over. Heads of other classes
and images of another size are no difference: the first is replaced, the second is resized.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import log
from typing import Any, NoReturn

from pydantic import ValidationError
from torch import Tensor

from weft.errors import WeftError
from weft.networks.base.backbone import TokenNetwork
from weft.networks.base.network import Network
from weft.networks.config import ImageConfig, ImageTokensConfig, NetworkConfig
from weft.networks.listing import listing
from weft.networks.registry import REGISTRY, named
from weft.networks.weights import timm
from weft.networks.weights.files import Checkpoint
from weft.networks.weights.load import FOREIGN, classes_of, layout_of, plainly_named, stated
from weft.networks.weights.outline import outline
from weft.networks.weights.own import OWN
from weft.networks.weights.resizing import stored_layout
from weft.networks.weights.rules import Adapter
from weft.terminal import brief_list

APART, TRIED = 3.0, 16  # times as many parameters, by a head of other classes; networks that are laid out and compared
HEADS = ("head.", "head_dist.")
RGB = 3  # channels of images that named sizes read


@dataclass(frozen=True)
class Recognised:
    """The network that a checkpoint is of, and the names of others whose tensors are the same."""

    name: str
    config: NetworkConfig
    others: tuple[str, ...] = ()


def recognised_config(checkpoint: Checkpoint, model: str = "") -> Recognised:
    """The network that a checkpoint is of: `model`, if given; what its config.json names; or what its tensors fit."""
    if model:
        named(model)  # refused, with the nearest, if there is none
    found = layout_of(checkpoint)
    adapter = found or OWN
    checkpoint = plainly_named(checkpoint, adapter)
    said = timm.architecture(checkpoint)
    names = [model] if model else alike(adapter, sum(tensor.numel() for tensor in checkpoint.tensors.values()))
    if not model and said in REGISTRY and adapter.fits(REGISTRY[said]):
        names = [said, *(name for name in names if name != said)]
    fitting: list[tuple[str, NetworkConfig]] = []
    tried: list[tuple[str, list[str]]] = []
    for name in names:
        if fitting and parameters(name) != parameters(fitting[0][0]):
            continue
        config, wrong = compared(adapter, checkpoint, REGISTRY[name])
        if wrong:
            tried.append((name, wrong))
            continue
        fitting.append((name, config))
        if name == said:  # others of the same tensors are not meant
            break
    if not fitting:
        refuse(checkpoint, model, found is not None, tried)
    (name, config), *others = fitting
    return Recognised(name, config, tuple(other for other, its in others if not computes_alike(its, config)))


def computes_alike(first: NetworkConfig, second: NetworkConfig) -> bool:
    """Whether two networks of the same tensors are the same but for what matters in training alone."""
    return type(first) is type(second) and timm.same_shape(first, second)


def refuse(checkpoint: Checkpoint, model: str, known: bool, tried: list[tuple[str, list[str]]]) -> NoReturn:
    """Say that a checkpoint, of a layout that is known or not, fits no network, and where the nearest one differs."""
    name, wrong = min(tried, key=lambda one: len(one[1]), default=("", []))
    if not tried or (not model and not known and 2 * len(wrong) >= len(checkpoint.tensors)):
        raise WeftError(
            f"{checkpoint.origin} is in no layout that weft knows (it begins with "
            f"{brief_list(sorted(checkpoint.tensors), 3)}); "
            f"it reads its own and {', '.join(map(str, FOREIGN))}"
        )
    what = f"is not of {model}" if model else f"fits no network of weft; the nearest is {name}"
    remedy = "give the --model that it was made for, or leave --model out" if model else "give a file of another one"
    raise WeftError(
        f"{checkpoint.origin} {what}: {brief_list(wrong, 3)} {'differs' if len(wrong) == 1 else 'differ'}; {remedy}"
    )


def compared(adapter: Adapter, checkpoint: Checkpoint, size: NetworkConfig) -> tuple[NetworkConfig, list[str]]:
    """The named size as the checkpoint has it, and the tensors in which they differ nevertheless."""
    known = {**adapter.usual, **beside(adapter, checkpoint), "num_classes": classes_of(adapter, checkpoint)}
    tokens = isinstance(size, ImageTokensConfig)  # whose positions tell the side of images
    names = {field.name for field in fields(size) if not (tokens and field.name == "img_size")}
    try:
        config = replace(size, **{key: value for key, value in known.items() if key in names})
    except (WeftError, ValidationError):  # settings that this size cannot have
        return size, sorted(checkpoint.tensors)
    network = outline(config)
    wrong = differing_names(adapter, checkpoint, network)
    if len(wrong) == len(checkpoint.tensors):
        return config, wrong
    try:
        stored = translated_shapes(adapter, checkpoint, network)
        if isinstance(network, TokenNetwork) and isinstance(config, ImageTokensConfig) and not wrong:
            grid = stored_layout(network, stored, known).grid
            config = replace(config, img_size=(grid[0] * config.stride, grid[1] * config.stride))
            network = outline(config)
    except (WeftError, ValidationError, RuntimeError, IndexError):  # shapes of another network altogether
        return config, [*wrong, *bodies(network)]
    own = network.state_dict()
    channels = read_channels(stored, own)
    if channels and isinstance(size, ImageConfig) and channels != size.in_chans:
        return compared(adapter, checkpoint, replace(size, in_chans=channels))
    return config, wrong + [
        f"{name} {tuple(tensor.shape)} where it has {tuple(own[name].shape)}"
        for name, tensor in stored.items()
        if tensor.shape != own[name].shape
    ]


def read_channels(stored: dict[str, Tensor], own: dict[str, Tensor]) -> int | None:
    """The channels of images that the stored kernels read, where that is all in which one differs from the own."""
    for name, tensor in stored.items():
        shape, usual = tuple(tensor.shape), tuple(own[name].shape)
        if len(shape) == len(usual) == 4 and shape != usual and (shape[0], *shape[2:]) == (usual[0], *usual[2:]):
            return shape[1] if usual[1] == RGB and shape[1] in (1, RGB) else None
    return None


def beside(adapter: Adapter, checkpoint: Checkpoint) -> dict[str, Any]:
    """What is known of a network beside its tensors; of timm's, whose settings a name implies, the side of images."""
    known = stated(adapter, checkpoint)
    return {key: value for key, value in known.items() if adapter.layout != "timm" or key == "img_size"}


def translated_shapes(adapter: Adapter, checkpoint: Checkpoint, network: Network) -> dict[str, Tensor]:
    """The tensors that both have, by weft's names and in weft's form, without their values."""
    return {
        rule.weft: rule.form.load([checkpoint.tensors[name].to("meta") for name in rule.foreign])
        for rule in adapter.rules(bodies(network))
        if all(name in checkpoint.tensors for name in rule.foreign)
    }


def alike(adapter: Adapter, numbers: int) -> list[str]:
    """Named sizes that the layout may hold, of nearly as many parameters: the nearest first, and not all of them.

    Where none has nearly as many, the one that is least far away.
    """

    def away(name: str) -> float:
        return abs(log(parameters(name) / max(1, numbers)))

    fitting = (name for name, size in REGISTRY.items() if size.family != "filternet" and adapter.fits(size))
    ordered = sorted(fitting, key=away)
    return [name for name in ordered if away(name) < log(APART)][:TRIED] or ordered[:1]


def parameters(name: str) -> int:
    """Of a named size, known without laying it out."""
    return listing().costs[name][0]


def bodies(network: Network) -> list[str]:
    """The names of a network's tensors without its head."""
    return [name for name in network.state_dict() if not name.startswith(HEADS)]


def differing_names(adapter: Adapter, checkpoint: Checkpoint, network: Network) -> list[str]:
    """Tensors that only one of the two has."""
    try:
        rules = list(adapter.rules(bodies(network)))
    except (WeftError, KeyError):
        return sorted(checkpoint.tensors)
    used = {name for rule in rules for name in rule.foreign}
    absent = [name for rule in rules for name in rule.foreign if name not in checkpoint.tensors and not rule.optional]
    spare = [
        name
        for name in checkpoint.tensors
        if name not in used and name not in adapter.head and not name.startswith(HEADS) and adapter.extra(name) is None
    ]
    return [*absent, *spare]
