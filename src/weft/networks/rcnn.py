"""Recurrent ConvNet (Liang & Hu 2015, C8): a 5×5 convolution, then four recurrent convolution layers.

Max pooling follows the first convolution and the second recurrent layer; the maximum over all positions of the last
layer is read by a linear head.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from weft.networks.config import RCNNConfig
from weft.networks.network import Network, check_image, make_head
from weft.nn.initialisation import initialise
from weft.nn.noise import Dropout, number_streams
from weft.nn.norm import BatchNorm2d
from weft.nn.recurrent import RecurrentConv2d


class RCNN(Network):
    """conv → pool → RCL → RCL → pool → RCL → RCL → maximum over positions → head."""

    config: RCNNConfig

    def __init__(self, config: RCNNConfig) -> None:
        super().__init__(config)
        self.stem = nn.Sequential(
            nn.Conv2d(config.in_chans, config.width, 5, padding=2, bias=False),
            BatchNorm2d(config.width) if config.norm else nn.Identity(),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        layers = [
            RecurrentConv2d(config.width, steps=config.steps, form=config.form, norm=config.norm) for _ in range(4)
        ]
        self.first, self.second = nn.Sequential(*layers[:2]), nn.Sequential(*layers[2:])
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.drop1, self.drop2 = Dropout(config.drop_rate), Dropout(config.drop_rate)
        initialise(self, "he")
        self.head = make_head(config.width, config.num_classes)
        number_streams(self)

    def forward_features(self, x: Tensor) -> Tensor:
        """Images → the last feature map (batch, width, height/4, width/4). Any side from 4 will do."""
        check_image(x, self.config.in_chans, None)
        x = self.stem(x.contiguous(memory_format=torch.channels_last))
        return self.second(self.drop2(self.pool(self.first(self.drop1(x)))))

    def forward_head(self, features: Tensor, *, pre_logits: bool = False) -> Tensor:
        pooled = features.amax((2, 3))
        return pooled if pre_logits else self.head(pooled)

    @property
    def head_inputs(self) -> int:
        return self.config.width
