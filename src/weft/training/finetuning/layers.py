"""Layer-wise rates and gradual thawing: the optimiser's groups, one pair a layer, from the embeddings to the head.

Lower layers know what is general and move less (Howard & Ruder 2018): a block's rate is `decay` times that of the
block above it, and with gradual thawing blocks start to move one after the other, from the top.
"""

from __future__ import annotations

import re

from weft.networks.base.network import Network
from weft.training.optim.optimisers import Groups

BLOCK = re.compile(r"(?:(?:trunk\.)?(?:blocks|stages)\.|(trunk\.layer))(\d+)")  # counted from 0, ResNet's from 1
TOPS = ("trunk.conv_head.", "trunk.bn2.", "trunk.final_conv.", "trunk.norm.")  # what follows a ConvNet's stages
ABOVE = ("norm.", "pooler.", "head.", "head_dist.", *TOPS)  # move with the head


def layer_numbers(network: Network) -> dict[str, int]:
    """Name of a parameter -> its layer: 0 for embeddings and stems, then the blocks or stages, and one more for what
    stands above them. In a hybrid a ConvNet's stages come first, then what makes tokens of their map, then its blocks.
    """
    names = [name for name, _ in network.named_parameters()]
    hybrid = any(name.startswith("blocks.") for name in names)
    stages = max((block_number(name) for name in names if name.startswith("trunk.")), default=0) if hybrid else 0
    tokens = stages + 1 if stages else 0  # where the embedding of a hybrid stands
    start = {name: 0 if name.startswith("trunk.") else tokens for name in names}
    blocks = {name: start[name] + block_number(name) for name in names if block_number(name)}
    top = max(blocks.values(), default=0) + 1
    others = {name: top if top == 1 or name.startswith(ABOVE) else start[name] for name in names}
    return {**others, **blocks}


def block_number(name: str) -> int:
    """Of the block or stage that a parameter is of, counted from 1; 0 if it is of none."""
    found = BLOCK.match(name)
    return int(found[2]) + (found[1] is None) if found else 0


def layered_groups(network: Network, weight_decay: float, rate_decay: float, thaw_epochs: float = 0.0) -> Groups:
    """The network's own groups, cut by layer; `share` is a factor on the rate, `thaw` the epoch from which it moves."""
    layers = layer_numbers(network)
    top = max(layers.values())
    number = {id(p): layers[name] for name, p in network.named_parameters()}
    groups: Groups = []
    for whole in network.parameter_groups(weight_decay):
        for layer in range(top + 1):
            members = [p for p in whole["params"] if number[id(p)] == layer]
            below = top - layer  # how far from the head
            if members:
                groups.append({**whole, "params": members, "share": rate_decay**below, "thaw": thaw_epochs * below})
    return groups
