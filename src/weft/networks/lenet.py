"""The classic ConvNets (LeCun et al. 1998): LeNet-5, a smaller one, its locally connected twin, and image → image.

(convolution → activation → 2×2 pooling) for each number of channels, flatten, fully connected layers.
"""

from __future__ import annotations

from torch import Tensor, nn

from weft.errors import WeftError
from weft.networks.base.network import Network, check_image, make_head
from weft.networks.config import FilterNetConfig, LeNetConfig
from weft.networks.registry import Sizes
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


class FilterNet(Network):
    """From pairs of pictures it learns the filter that turns one into the other, by convolutions that keep the size.

    Without hidden layers it is one kernel: what it learns *is* the filter.
    """

    config: FilterNetConfig

    def __init__(self, config: FilterNetConfig) -> None:
        super().__init__(config)
        layers: list[nn.Module] = []
        inputs = config.in_chans
        for width in config.hidden:
            layers += [nn.Conv2d(inputs, width, config.kernel, padding=config.kernel // 2), activation(config.act)]
            inputs = width
        self.hidden = nn.Sequential(*layers)
        self.head = nn.Conv2d(inputs, config.out_chans, config.kernel, padding=config.kernel // 2)
        initialise(self, "he")

    def forward_features(self, x: Tensor) -> Tensor:
        """Images → (batch, channels, height, width). Any side will do."""
        check_image(x, self.config.in_chans, None)
        return self.hidden(x)

    def forward_head(self, features: Tensor, *, pre_logits: bool = False) -> Tensor:
        return features if pre_logits else self.head(features)

    def reset_classifier(self, num_classes: int) -> None:
        raise WeftError("an image → image network has no classes; build another one with out_chans=…")

    @property
    def head_inputs(self) -> int:
        return self.config.hidden[-1] if self.config.hidden else self.config.in_chans


def sizes() -> Sizes:
    yield "lenet5", LeNetConfig()
    yield "lenet_slide", LeNetConfig(kernel=3)  # the lecture slide's net: 3×3 kernels, fc 120-84-10
    yield "lenet5_local", LeNetConfig(local=True)
    yield "filternet", FilterNetConfig()
