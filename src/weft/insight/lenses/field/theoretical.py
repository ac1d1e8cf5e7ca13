"""Where the theoretical receptive field of each layer lies: its side, its stride and the pixel in its middle."""

from __future__ import annotations

from dataclasses import dataclass

from weft.networks.config import (
    BiTConfig,
    EfficientNetConfig,
    FilterNetConfig,
    HaloNetConfig,
    ImageTokensConfig,
    LeNetConfig,
    LSTMConfig,
    NetworkConfig,
    NFNetConfig,
    RCNNConfig,
    ResNetConfig,
    TextConvConfig,
    TextTokensConfig,
)
from weft.networks.measure.receptive_field import layers_of

FEATURES = "features"  # stands for what `forward_features` gives, where no module's output does


@dataclass(frozen=True)
class Place:
    """After the layer `module`: side of the field in pixels or tokens (None: everything), the stride between
    neighbours, and the middle of the field of the first of them."""

    module: str
    side: int | None
    stride: int
    start: float

    def middle(self, position: int) -> float:
        """The middle of the field of the value at `position`."""
        return self.start + position * self.stride


def places(config: NetworkConfig) -> list[Place]:
    """The layers at which the field is measured, from the input on; empty where values have no place in the input."""
    if isinstance(config, TextConvConfig):  # side by side, not one after the other; each pads k − 1 on both sides
        return [
            Place(f"convolutions.{number}.conv", kernel, 1, -(kernel - 1) / 2)
            for number, kernel in enumerate(config.kernels)
        ]
    if isinstance(config, LSTMConfig):
        return [Place("embed", 1, 1, 0.0), Place(FEATURES, None, 1, 0.0)]
    found: dict[str, Place] = {} if not isinstance(config, TextTokensConfig) else {"embed": Place("embed", 1, 1, 0.0)}
    side: int | None = 1
    stride, start = 1, 0.0
    for layer in layers_of(config):
        if layer.kernel is None:
            side = None
        else:
            reach = (layer.kernel - 1) * layer.dilation
            side = None if side is None else side + reach * stride
            padding = 0 if isinstance(config, LeNetConfig) or layer.name == "embed" else reach // 2
            start += (reach / 2 - padding) * stride
        stride *= layer.stride
        module = module_of(config, layer.name)
        if module:
            found[module] = Place(module, side, stride, start)
    return list(found.values())


def module_of(config: NetworkConfig, name: str) -> str:
    """The module whose output has the field of a layer of receptive_field.py; the last layer in it stands for it."""
    if isinstance(config, EfficientNetConfig | NFNetConfig | BiTConfig | HaloNetConfig):
        return f"trunk.{name}"
    if isinstance(config, ImageTokensConfig | ResNetConfig):
        if name == "embed" or name.startswith("blocks."):
            return name
        return f"trunk.{name.rpartition('.conv')[0] or name}"
    if isinstance(config, TextTokensConfig):
        return name
    if isinstance(config, LeNetConfig):
        kind, number = name[:4], int(name[4:]) - 1
        return f"convolutions.{3 * number + (2 if kind == 'pool' else 0)}"
    if isinstance(config, FilterNetConfig):
        number = int(name[4:]) - 1
        return "head" if number == len(config.hidden) else f"hidden.{2 * number}"
    if isinstance(config, RCNNConfig):
        return name.rpartition(".step")[0] or name.removesuffix(".pool")
    return ""
