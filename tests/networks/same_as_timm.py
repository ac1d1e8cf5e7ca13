"""Two networks are the same: equal outputs and equal gradients for the same random weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from weft.networks.base.network import Network
from weft.networks.registry import build
from weft.networks.weights import load_weights

TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12}
SHARED: dict[str, Any] = {"num_classes": 7, "in_chans": 2}


def randomise(network: nn.Module) -> None:
    """Weights and statistics at random: untrained gates and heads would hide their inputs behind zeros."""
    generator = torch.Generator().manual_seed(0)
    for name, tensor in network.state_dict().items():
        if name.endswith("running_var"):
            tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.5)
        elif tensor.is_floating_point():
            scale = tensor[0].numel() ** -0.5 if tensor.ndim > 1 else 0.3
            tensor.copy_(scale * torch.randn(tensor.shape, generator=generator) + (tensor.ndim == 1))


def images(network: Network, batch: int, dtype: torch.dtype) -> Tensor:
    config: Any = network.config
    return torch.randn(batch, config.in_chans, *config.img_size, generator=torch.Generator().manual_seed(1)).to(dtype)


def gradients_like(ours: Network, theirs: nn.Module) -> dict[str, Tensor]:
    """timm's gradients by weft's names: they are loaded as if they were weights."""
    twin = build(ours.config).to(next(ours.parameters()).dtype)
    foreign = {**dict(theirs.named_buffers()), **{name: p.grad for name, p in theirs.named_parameters()}}
    load_weights(twin, foreign)
    return dict(twin.named_parameters())


def assert_same(theirs: nn.Module, ours: Network, dtype: torch.dtype, batch: int = 3, train: bool = False) -> None:
    randomise(theirs)
    theirs.to(dtype).train(train)
    ours.to(dtype).train(train)
    load_weights(ours, theirs.state_dict())
    x = images(ours, batch, dtype)
    want, got = theirs(x), ours(x)
    assert (got - want).abs().max() < TOLERANCE[dtype] * want.abs().max()
    for y in (want, got):
        y.square().mean().backward()
    wanted = gradients_like(ours, theirs)
    # Some gradients are zero but for rounding (a bias before a norm), so the scale is that of all of them.
    largest = max(gradient.abs().max() for gradient in wanted.values())
    for name, parameter in ours.named_parameters():
        assert parameter.grad is not None
        assert (parameter.grad - wanted[name]).abs().max() < TOLERANCE[dtype] * largest, name
