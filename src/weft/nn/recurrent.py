"""The recurrent convolution layer, unrolled over time with shared weights, in both of its forms (C8)."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from weft.nn.activations import activation
from weft.nn.norm import BatchNorm2d

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
