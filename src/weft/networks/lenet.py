"""The classic ConvNets (C3, C4): LeNet-5, the slide's small net, and its locally connected twin (C5).

(convolution → activation → 2×2 pooling) for each number of channels, flatten, fully connected layers.
"""

from __future__ import annotations

from torch import Tensor, nn

from weft.networks.config import LeNetConfig
from weft.networks.network import Network, check_image, make_head
from weft.nn.activations import activation
from weft.nn.convolution import LocallyConnected2d
from weft.nn.initialisation import initialise
from weft.nn.noise import Dropout, number_streams


class LeNet(Network):
    """Convolutions (or locally connected layers) with pooling, then a perceptron stack."""

    config: LeNetConfig

    def __init__(self, config: LeNetConfig) -> None:
        super().__init__(config)
        pool = nn.MaxPool2d if config.pool == "max" else nn.AvgPool2d
        stages: list[nn.Module] = []
        inputs, side = config.in_chans, config.img_size
        for outputs, after in zip(config.channels, config.sides(), strict=True):
            if config.local:
                stages.append(LocallyConnected2d(inputs, outputs, config.kernel, side))
            else:
                stages.append(nn.Conv2d(inputs, outputs, config.kernel))
            stages += [activation(config.act), pool(2)]
            inputs, side = outputs, after
        self.convolutions = nn.Sequential(*stages)
        dense: list[nn.Module] = []
        inputs *= side[0] * side[1]
        for width in config.fc:
            dense += [nn.Linear(inputs, width), activation(config.act), Dropout(config.drop_rate)]
            inputs = width
        self.dense, self.last = nn.Sequential(*dense), inputs
        initialise(self, "he")
        self.head = make_head(inputs, config.num_classes)
        number_streams(self)

    def forward_features(self, x: Tensor) -> Tensor:
        """Images → the last feature map (batch, channels, height, width)."""
        check_image(x, self.config.in_chans, self.config.img_size)
        return self.convolutions(x)

    def forward_head(self, features: Tensor, *, pre_logits: bool = False) -> Tensor:
        pooled = self.dense(features.flatten(1))
        return pooled if pre_logits else self.head(pooled)

    @property
    def head_inputs(self) -> int:
        return self.last
