"""Batch normalisation whose statistics are those of the whole batch, however many processes share it.

In one process this is torch's batch norm, bit for bit. With several, mean and variance are reduced over the ranks, so
that two processes with half a batch each compute what one process computes. (torch's SyncBatchNorm needs a GPU.)
"""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor, distributed, nn


def several_ranks() -> bool:
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


class _SumOverRanks(torch.autograd.Function):
    """The sum over all ranks. Every rank's loss depends on it, so its gradient is the sum of their gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        total = gradient.clone()
        distributed.all_reduce(total)
        return total


def sum_over_ranks(x: Tensor) -> Tensor:
    return _SumOverRanks.apply(x)


class _OverRanks(nn.modules.batchnorm._BatchNorm):
    """Batch norm over axis 1 of (batch, channels, …), with statistics over all ranks while training.

    One that is `held` keeps the statistics it has, and uses them in training too; its scale and shift are learnt still.
    """

    held = False

    def train(self, mode: bool = True) -> Self:
        return super().train(mode and not self.held)

    def forward(self, x: Tensor) -> Tensor:
        if not (self.training and several_ranks()):
            return super().forward(x)
        axes = [axis for axis in range(x.ndim) if axis != 1]
        shape = [1, -1] + [1] * (x.ndim - 2)
        count = sum_over_ranks(torch.tensor([float(x.numel() // x.shape[1])], device=x.device))
        mean = sum_over_ranks(x.sum(axes)) / count
        centred = x - mean.view(shape)
        variance = sum_over_ranks(centred.square().sum(axes)) / count
        self._track(mean.detach(), variance.detach() * count / (count - 1))
        normed = centred * torch.rsqrt(variance + self.eps).view(shape)
        return normed * self.weight.view(shape) + self.bias.view(shape)

    @torch.no_grad()
    def _track(self, mean: Tensor, variance: Tensor) -> None:
        """Move the running statistics; the running variance is the unbiased one, as in torch."""
        assert self.running_mean is not None and self.running_var is not None
        assert self.momentum is not None and self.num_batches_tracked is not None
        self.num_batches_tracked += 1
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance, self.momentum)


def hold_statistics(network: nn.Module) -> bool:
    """Let all batch norms keep the statistics they were trained with; whether there are any.

    A few small batches of other data would replace what many large ones have measured, and a network that is tuned
    with the statistics of a batch is used with others.
    """
    norms = [module for module in network.modules() if isinstance(module, _OverRanks)]
    for norm in norms:
        norm.held = True
        norm.eval()
    return bool(norms)


class BatchNorm1d(_OverRanks):
    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in (2, 3):
            raise ValueError(f"expected (batch, channels[, length]), got {input.ndim} axes")


class BatchNorm2d(_OverRanks):
    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim != 4:
            raise ValueError(f"expected (batch, channels, height, width), got {input.ndim} axes")
