"""Which named network a bare file of weights belongs to, told by the names and shapes of its tensors.

A named size fits when every tensor of it is in the file, in its shape, and nothing is left over. Heads of other classes
and images of another size are no difference: the first is replaced, the second is resized.
"""

from __future__ import annotations

from dataclasses import fields, replace
from math import log

from torch import Tensor

from weft.errors import WeftError
from weft.networks.base.backbone import TokenNetwork
from weft.networks.base.network import Network
from weft.networks.config import ImageTokensConfig, NetworkConfig
from weft.networks.listing import listing
from weft.networks.registry import REGISTRY, named
from weft.networks.weights.files import Checkpoint
from weft.networks.weights.load import FOREIGN, classes_of, layout_of, plainly_named
from weft.networks.weights.outline import outline
from weft.networks.weights.own import OWN
from weft.networks.weights.resizing import stored_layout
from weft.networks.weights.rules import Adapter
from weft.terminal import brief_list

APART, TRIED = 3.0, 16  # times as many parameters, by a head of other classes; networks that are laid out and compared
HEADS = ("head.", "head_dist.")


def recognised_config(checkpoint: Checkpoint, model: str = "") -> tuple[str, NetworkConfig]:
    """The name and configuration of the network that a checkpoint is of; `model`, if given, must be that name."""
    if model:
        named(model)  # refused, with the nearest, if there is none
    adapter = layout_of(checkpoint) or OWN
    checkpoint = plainly_named(checkpoint, adapter)
    names = [model] if model else alike(adapter, sum(tensor.numel() for tensor in checkpoint.tensors.values()))
    tried = []
    for name in names:
        config, wrong = compared(adapter, checkpoint, REGISTRY[name])
        if not wrong:
            return name, config
        tried.append((len(wrong), name, wrong))
    count, name, wrong = min(tried) if tried else (0, "", [])
    if not tried or (not model and 2 * count >= len(checkpoint.tensors)):
        raise WeftError(
            f"{checkpoint.origin} is in no layout that weft knows (it begins with "
            f"{brief_list(sorted(checkpoint.tensors), 3)}); "
            f"it reads its own and {', '.join(map(str, FOREIGN))}"
        )
    what = f"is not of {model}" if model else f"fits no network of weft; the nearest is {name}"
    remedy = "give the --model that it was made for, or leave --model out" if model else "give a file of another one"
    raise WeftError(
        f"{checkpoint.origin} {what}: {brief_list(wrong, 3)} {'differs' if count == 1 else 'differ'}; {remedy}"
    )


def compared(adapter: Adapter, checkpoint: Checkpoint, size: NetworkConfig) -> tuple[NetworkConfig, list[str]]:
    """The named size as the checkpoint has it, and the tensors in which they differ nevertheless."""
    known = {**adapter.usual, "num_classes": classes_of(adapter, checkpoint)}
    names = {field.name for field in fields(size)}
    config = replace(size, **{key: value for key, value in known.items() if key in names})
    network = outline(config)
    wrong = differing_names(adapter, checkpoint, network)
    if len(wrong) == len(checkpoint.tensors):
        return config, wrong
    try:
        stored = translated_shapes(adapter, checkpoint, network)
        if isinstance(network, TokenNetwork) and isinstance(config, ImageTokensConfig) and not wrong:
            grid = stored_layout(network, stored, {}).grid
            config = replace(config, img_size=(grid[0] * config.stride, grid[1] * config.stride))
            network = outline(config)
    except (WeftError, RuntimeError, IndexError):  # shapes of another network altogether
        return config, [*wrong, *bodies(network)]
    own = network.state_dict()
    return config, wrong + [
        f"{name} {tuple(tensor.shape)} where it has {tuple(own[name].shape)}"
        for name, tensor in stored.items()
        if tensor.shape != own[name].shape
    ]


def translated_shapes(adapter: Adapter, checkpoint: Checkpoint, network: Network) -> dict[str, Tensor]:
    """The tensors that both have, by weft's names and in weft's form, without their values."""
    return {
        rule.weft: rule.form.load([checkpoint.tensors[name].to("meta") for name in rule.foreign])
        for rule in adapter.rules(bodies(network))
        if all(name in checkpoint.tensors for name in rule.foreign)
    }


def alike(adapter: Adapter, numbers: int) -> list[str]:
    """Named sizes that the layout may hold, of nearly as many parameters: the nearest first, and not all of them."""

    def away(name: str) -> float:
        return abs(log(listing().costs[name][0] / max(1, numbers)))

    fitting = (name for name, size in REGISTRY.items() if size.family != "filternet" and adapter.fits(size))
    return sorted((name for name in fitting if away(name) < log(APART)), key=away)[:TRIED]


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
