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


def layer_number(name: str, depth: int) -> int:
    """0 for embeddings and stems, then the blocks, and depth + 1 for what stands above them."""
    found = BLOCK.match(name)
    if found:
        return int(found[2]) + (found[1] is None)
    return depth + 1 if name.startswith(ABOVE) or depth == 0 else 0


def depth_of(network: Network) -> int:
    """How many blocks, or stages, a network has."""
    numbers = [layer_number(name, 1) for name, _ in network.named_parameters() if BLOCK.match(name)]
    return max(numbers, default=0)


def layered_groups(network: Network, weight_decay: float, rate_decay: float, thaw_epochs: float = 0.0) -> Groups:
    """The network's own groups, cut by layer; `share` is a factor on the rate, `thaw` the epoch from which it moves."""
    depth = depth_of(network)
    number = {id(p): layer_number(name, depth) for name, p in network.named_parameters()}
    groups: Groups = []
    for whole in network.parameter_groups(weight_decay):
        for layer in range(depth + 2):
            members = [p for p in whole["params"] if number[id(p)] == layer]
            below = depth + 1 - layer  # how far from the head
            if members:
                groups.append({**whole, "params": members, "share": rate_decay**below, "thaw": thaw_epochs * below})
    return groups
