"""The same network without its norms, or without its shortcuts: what they do is seen by taking them out.

Fresh weights are compared, as trained ones have settled on the norms and shortcuts that they were trained with.
"""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from weft.networks.base.network import Network
from weft.networks.config import NetworkConfig
from weft.networks.gmlp import GatedBlock
from weft.networks.registry import build
from weft.networks.resnet import BasicBlock, Bottleneck
from weft.nn.blocks import Block
from weft.nn.norm import BatchNorm1d, BatchNorm2d

NORMS = (nn.LayerNorm, nn.GroupNorm, BatchNorm1d, BatchNorm2d)
BLOCKS = (Block, GatedBlock, BasicBlock, Bottleneck)


class Unshortened(nn.Module):
    """A residual block whose branch is all there is: what the shortcut carried is dropped."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        block: Any = self.block
        if isinstance(block, Block):
            return mixed(block, x, mask)
        if isinstance(block, GatedBlock):
            y = block.branch(x, mask)
            return y if block.norm_first else block.norm(y)
        y = F.relu(block.bn1(block.conv1(x)))
        y = block.bn2(block.conv2(y))
        return F.relu(block.bn3(block.conv3(F.relu(y))) if isinstance(block, Bottleneck) else y)


def mixed(block: Block, x: Tensor, mask: Tensor | None) -> Tensor:
    """Mixer and channel MLP one after the other, with the norms where they were."""
    if block.norm_first:
        return block.channel_branch(block.token_branch(x, mask))
    return block.norm2(block.channel_branch(block.norm1(block.token_branch(x, mask))))


def without(network: nn.Module, kinds: tuple[type[nn.Module], ...], replacement: Any) -> Any:
    """A copy in which every layer of some kinds is replaced by what `replacement` makes of it."""
    changed = copy.deepcopy(network)
    for parent in list(changed.modules()):
        if isinstance(parent, Unshortened):
            continue
        for name, child in list(parent.named_children()):
            if isinstance(child, kinds):
                setattr(parent, name, replacement(child))
    return changed


def variants(config: NetworkConfig, seed: int = 0) -> tuple[dict[str, nn.Module], str]:
    """Fresh networks with and without norms and shortcuts, and a sentence on what could not be varied ("" if all was).

    Heads and branches that start at zero start as others do here: behind a zero every gradient is zero.
    """
    fields = {"zero_head": False, "zero_init_last": False}
    config = config.replaced(**{name: value for name, value in fields.items() if hasattr(config, name)})
    base = fresh(config, seed)
    found: dict[str, nn.Module] = {"as it starts": base}
    normed = any(isinstance(module, NORMS) for module in base.modules())
    shortened = any(isinstance(module, BLOCKS) for module in base.modules())
    if normed:
        found["without norms"] = without(base, NORMS, lambda _: nn.Identity())
    elif hasattr(config, "norm"):
        found["with norms"] = fresh(config.replaced(norm=True), seed)
    if shortened:
        found["without shortcuts"] = without(base, BLOCKS, Unshortened)
    elif hasattr(config, "residual"):
        name = "without shortcuts" if config.residual else "with shortcuts"
        found[name] = fresh(config.replaced(residual=not config.residual), seed)
    if normed and shortened:
        found["without both"] = without(found["without norms"], BLOCKS, Unshortened)
    return found, missing(config.family, normed or hasattr(config, "norm"), shortened or hasattr(config, "residual"))


def missing(family: str, normed: bool, shortened: bool) -> str:
    """What a family does not have."""
    lacks = [what for what, there in (("norms", normed), ("shortcuts", shortened)) if not there]
    return f"A network of the family {family} has no {' and no '.join(lacks)} that can be taken out." if lacks else ""


def fresh(config: NetworkConfig, seed: int) -> Network:
    """Initial weights; batch norm uses its batch's statistics, as at the start of training."""
    network = build(config, seed).eval()
    for module in network.modules():
        if isinstance(module, BatchNorm1d | BatchNorm2d):
            module.train()
    return network
