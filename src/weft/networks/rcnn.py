"""Recurrent ConvNet (Liang & Hu 2015): a 5×5 convolution, then four recurrent convolution layers.

Max pooling follows the first convolution and the second recurrent layer; the maximum over all positions of the last
layer is read by a linear head.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from weft.networks.base.network import Network, check_image, make_head
from weft.networks.config import RCNNConfig
from weft.networks.registry import Sizes
from weft.nn.activations import activation
from weft.nn.initialisation import initialise
from weft.nn.noise import Dropout, number_streams
from weft.nn.norm import BatchNorm2d


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


# ---- The recurrent convolution layer, unrolled over time with shared weights, in both of its forms.

Form = Literal["two_kernels", "one_kernel"]


class RecurrentConv2d(nn.Module):
    """(batch, channels, H, W) → the same shape, after `steps` applications of one set of weights.

    two_kernels (Liang & Hu 2015): x_0 = act(W_f∗u), x_t = act(W_f∗u + W_r∗x_{t−1}); `steps` counts the recurrent
    applications, so the unrolled layer is steps + 1 deep.
    one_kernel (the primer): o_1 = act(k∗u), o_t = act(k∗(o_1 + o_{t−1})); `steps` counts the applications of k after
    the first, so that both forms have the same depth for the same `steps`.
    With `norm`, each step has a batch norm of its own (the weights of the kernels stay shared).
    """

    def __init__(
        self,
        channels: int,
        *,
        steps: int = 3,
        kernel: int = 3,
        form: Form = "two_kernels",
        norm: bool = True,
        bias: bool = False,
        act: str = "relu",
    ) -> None:
        super().__init__()
        self.steps, self.form = steps, form
        self.forward_conv = nn.Conv2d(channels, channels, kernel, padding=kernel // 2, bias=bias)
        if form == "two_kernels":
            self.recurrent_conv = nn.Conv2d(channels, channels, kernel, padding=kernel // 2, bias=False)
        self.norms = nn.ModuleList(BatchNorm2d(channels) if norm else nn.Identity() for _ in range(steps + 1))
        self.act = activation(act)

    def forward(self, u: Tensor) -> Tensor:
        driven = self.forward_conv(u)
        first = x = self.act(self.norms[0](driven))
        for norm in list(self.norms)[1:]:
            if self.form == "two_kernels":
                x = self.act(norm(driven + self.recurrent_conv(x)))
            else:
                x = self.act(norm(self.forward_conv(first + x)))
        return x


def sizes() -> Sizes:
    """Table 1 of the paper."""
    for width in (96, 128, 160):
        yield f"rcnn_{width}", RCNNConfig(width=width)
