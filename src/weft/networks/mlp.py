"""Perceptron stack: a = act(W x + b), any depth and width, on vectors or on flattened images."""

from __future__ import annotations

from torch import Tensor, nn

from weft.errors import WeftError
from weft.networks.base.network import Network, check_image, make_head
from weft.networks.config import MLPConfig
from weft.networks.registry import Sizes
from weft.nn.activations import activation
from weft.nn.initialisation import initialise
from weft.nn.noise import Dropout, number_streams
from weft.nn.norm import BatchNorm1d


class MLP(Network):
    """Linear → (batch norm) → activation → dropout, for each hidden width; then a linear head.

    With `residual`, a layer's input is added to its output where their widths agree.
    """

    config: MLPConfig

    def __init__(self, config: MLPConfig) -> None:
        super().__init__(config)
        layers: list[nn.Module] = []
        inputs = config.inputs
        for width in config.hidden:
            layers.append(nn.Linear(inputs, width, bias=config.bias))
            if config.norm:
                layers.append(BatchNorm1d(width))
            layers += [activation(config.act), Dropout(config.drop_rate)]
            inputs = width
        self.layers = nn.Sequential(*layers)
        initialise(self, "he")
        self.head = make_head(inputs, config.num_classes)
        number_streams(self)

    def forward_features(self, x: Tensor) -> Tensor:
        """(batch, features) or images (batch, channels, height, width) → (batch, last hidden width)."""
        if self.config.img_size is not None:
            check_image(x, self.config.in_chans, self.config.img_size)
        elif x.ndim != 2 or x.shape[1] != self.config.in_features:
            raise WeftError(f"the network takes vectors of {self.config.in_features} values, got {tuple(x.shape)}")
        x = x.flatten(1)
        return self.add_layers(x) if self.config.residual else self.layers(x)

    def add_layers(self, x: Tensor) -> Tensor:
        """(batch, inputs) → (batch, last hidden width), each layer around a shortcut."""
        parts = len(self.layers) // len(self.config.hidden) if self.config.hidden else 1
        for first in range(0, len(self.layers), parts):
            y = self.layers[first : first + parts](x)
            x = x + y if x.shape == y.shape else y
        return x

    def forward_head(self, features: Tensor, *, pre_logits: bool = False) -> Tensor:
        return features if pre_logits else self.head(features)

    @property
    def head_inputs(self) -> int:
        return self.config.hidden[-1] if self.config.hidden else self.config.inputs


def sizes() -> Sizes:
    yield "mlp", MLPConfig(img_size=(32, 32), num_classes=10)
