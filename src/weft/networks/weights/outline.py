"""Before a stored network is built: does its file hold the weights that its configuration asks for?

A configuration of a few bytes can ask for any amount of memory. So what it asks for is counted by formula, then laid
out without memory (on the meta device), and compared with the header of the file; only what agrees is built.
"""

from __future__ import annotations

from math import prod
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from weft.disk import require_plain
from weft.errors import WeftError
from weft.networks.base.network import Network
from weft.networks.config import NetworkConfig
from weft.networks.measure.cost import total_parameters
from weft.networks.registry import build
from weft.networks.weights.files import TooLarge, first_line, read_safetensors
from weft.nn.initialisation import seeded
from weft.terminal import brief_list

Shape = tuple[int, ...]
UNSTORED = 256 << 20  # bytes that a network may compute for itself, such as a table of positions


def header(path: Path) -> dict[str, Shape]:
    """The names and shapes of the tensors in a .safetensors file, read from its first bytes."""
    require_plain(path)
    try:
        with safe_open(path, framework="pt") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise WeftError(f"cannot read the weights {path}: {first_line(error)}; restore the file") from None
    except MemoryError as error:
        raise TooLarge(path) from error


def build_stored(config: NetworkConfig, path: Path, described: Path) -> Network:
    """The network of a configuration, which stands in the file `described`, with the weights in the file `path`."""
    found = header(path)
    require_parameters(total_parameters(config), sum(map(prod, found.values())), path, described)
    bare = outline(config)
    require_shapes(bare, found, path, described)
    require_little_unstored(bare, described)
    with seeded(0):  # the draws of weights that are about to be replaced are nobody else's
        network = build(config)
    fill(network, path)
    return network


def outline(config: NetworkConfig) -> Network:
    """The network of a configuration without memory for its weights."""
    with torch.device("meta"):
        return build(config)


def require_parameters(wanted: int, stored: int, path: Path | str, described: Path | str) -> None:
    """Refuse a configuration of more parameters than its file has numbers."""
    if wanted > stored:
        raise WeftError(
            f"{described} describes a network of {wanted:,} parameters, but {path} holds {stored:,} numbers; "
            "they do not belong together: restore them"
        )


def require_shapes(network: nn.Module, found: dict[str, Shape], path: Path, described: Path) -> None:
    """Refuse a file whose tensors are not those of the network that its configuration describes."""
    own = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    if own != found:
        wrong = sorted(name for name in own.keys() | found.keys() if own.get(name) != found.get(name))
        raise WeftError(
            f"{path} does not hold the weights of the network in {described}: {brief_list(wrong, 3)} differ; "
            "restore them"
        )


def require_little_unstored(network: nn.Module, described: Path | str) -> None:
    """Refuse a network that would compute very large tables for itself."""
    own = network.state_dict().keys()
    unstored = sum(b.numel() * b.element_size() for n, b in network.named_buffers() if n not in own)
    if unstored > UNSTORED:
        raise WeftError(f"{described} asks for {unstored >> 20:,} MiB beside its weights; no such network was trained")


def fill(module: nn.Module, path: Path) -> None:
    """Put the weights of a file, which has their names and shapes, into a network."""
    weights = read_safetensors(path)[0]
    own = module.state_dict()
    require_shapes(module, {name: tuple(value.shape) for name, value in weights.items()}, path, path.parent)
    odd = [name for name, value in weights.items() if value.is_floating_point() != own[name].is_floating_point()]
    if odd:
        raise WeftError(
            f"{path} holds {brief_list(odd, 3)} in {weights[odd[0]].dtype}, which are no weights; restore it"
        )
    module.load_state_dict(weights)
