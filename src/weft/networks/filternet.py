"""A small image → image ConvNet (F3): from pairs of pictures it learns the filter that turns one into the other."""

from __future__ import annotations

from torch import Tensor, nn

from weft.errors import WeftError
from weft.networks.config import FilterNetConfig
from weft.networks.network import Network, check_image
from weft.nn.activations import activation
from weft.nn.initialisation import initialise


class FilterNet(Network):
    """Convolutions that keep the size; without hidden layers, one kernel: what it learns *is* the filter."""

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
