"""What every network answers: features, logits, another head, parameter groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from weft.errors import WeftError
from weft.networks.config import ImageConfig, NetworkConfig
from weft.networks.measure.cost import Stage
from weft.networks.measure.receptive_field import Layer
from weft.nn.norm import BatchNorm1d, BatchNorm2d

UNDECAYED_MODULES = (nn.LayerNorm, nn.GroupNorm, BatchNorm1d, BatchNorm2d, nn.PReLU)
UNDECAYED_NAMES = ("bias", "table", "height_rel", "width_rel", "class_token", "distill_token", "gain", "skipinit_gain")
"""Biases, positions, tokens and NFNet's scales."""


class Network(nn.Module):
    """A trained or untrained system: `forward` is `forward_head(forward_features(x))`, of a `mirrored` network twice.

    The methods have the names that timm's users know. `head` is the last linear layer, or Identity without classes.
    """

    head: nn.Module
    config: NetworkConfig

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config

    @staticmethod
    def cost(config: Any) -> Iterable[Stage]:
        """Parameters and multiply-adds by formula, from input to head."""
        raise NotImplementedError

    @staticmethod
    def field(config: Any) -> Iterable[Layer]:
        """The layers on the longest path, as the receptive field sees them; as here, one that sees everything."""
        return [Layer("layers", None)]

    def forward_features(self, x: Tensor) -> Tensor:
        """Features before pooling: (batch, tokens, channels), (batch, channels, height, width) or (batch, channels)."""
        raise NotImplementedError

    def forward_head(self, features: Tensor, *, pre_logits: bool = False) -> Tensor:
        """Pooled features (batch, channels), or logits (batch, classes) made of them."""
        raise NotImplementedError

    def answer(self, x: Tensor) -> Tensor:
        """Logits (batch, classes)."""
        return self.forward_head(self.forward_features(x))

    def forward(self, x: Tensor) -> Tensor:
        """Logits; those of a `mirrored` network in use are the mean over each image and its mirror image."""
        if self.training or not getattr(self.config, "mirrored", False):
            return self.answer(x)
        return (self.answer(x) + self.answer(x.flip(-1))) / 2

    def get_classifier(self) -> nn.Module:
        return self.head

    def reset_classifier(self, num_classes: int) -> None:
        """Put a fresh head for `num_classes` in place of the old one (0: none), on the same device."""
        if num_classes < 0:
            raise WeftError(f"a head cannot have {num_classes} classes; use 0 for none")
        weight = next(self.parameters())
        self.config = self.config.replaced(num_classes=num_classes)
        self.head = self.fresh_head().to(weight.device, weight.dtype)

    def fresh_head(self) -> nn.Module:
        """The head that the configuration asks for, as it starts."""
        return make_head(self.head_inputs, self.config.num_classes)

    @property
    def head_inputs(self) -> int:
        """Width of the vector that the head reads."""
        raise NotImplementedError

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Two groups for an optimiser: weights, which decay, and norms, biases, positions and tokens, which do not."""
        decayed: list[Tensor] = []
        undecayed: list[Tensor] = []
        for module in self.modules():
            for name, parameter in module.named_parameters(recurse=False):
                spared = isinstance(module, UNDECAYED_MODULES) or name.startswith(UNDECAYED_NAMES)
                (undecayed if spared else decayed).append(parameter)
        return [
            {"params": decayed, "weight_decay": weight_decay, "weights": True},
            {"params": undecayed, "weight_decay": 0.0, "weights": False},
        ]


def uncompiled(network: Network) -> Network:
    """The network itself, if it stands behind `torch.compile`, which changes the names of its tensors."""
    return getattr(network, "_orig_mod", network)


class TrunkNetwork(Network):
    """Trunk → mean over positions → linear head: images of any side, unless the trunk is made for one."""

    config: ImageConfig
    trunk: nn.Module
    drop: nn.Module
    any_side = True

    def forward_features(self, x: Tensor) -> Tensor:
        """Images → the last feature map (batch, channels, height, width)."""
        check_image(x, self.config.in_chans, None if self.any_side else self.config.img_size)
        return self.trunk(x)

    def forward_head(self, features: Tensor, *, pre_logits: bool = False) -> Tensor:
        pooled = features.mean((2, 3))
        return pooled if pre_logits else self.head(self.drop(pooled))


def make_head(inputs: int, classes: int, zero: bool = False) -> nn.Module:
    """The linear layer from features to outputs; zero weights start from uniform predictions."""
    if classes == 0:
        return nn.Identity()
    head = nn.Linear(inputs, classes)
    if zero:
        nn.init.zeros_(head.weight)
    else:
        nn.init.trunc_normal_(head.weight, std=0.02)
    nn.init.zeros_(head.bias)
    return head


def check_image(x: Tensor, in_chans: int, img_size: tuple[int, int] | None) -> None:
    """Refuse a batch of images that the network was not made for."""
    if x.ndim != 4:
        raise WeftError(f"expected images of shape (batch, channels, height, width), got {tuple(x.shape)}")
    if not x.is_floating_point():
        raise WeftError(f"the images are {x.dtype}; make them float and scale them as the network was trained")
    if x.shape[1] != in_chans:
        raise WeftError(
            f"the network takes {in_chans} channels, the images have {x.shape[1]}; convert them or use in_chans="
            f"{x.shape[1]}"
        )
    if img_size is not None and tuple(x.shape[2:]) != tuple(img_size):
        raise WeftError(
            f"the network takes images of {img_size[0]}×{img_size[1]}, these are {x.shape[2]}×{x.shape[3]}; resize "
            f"them or build it with img_size=({x.shape[2]}, {x.shape[3]})"
        )


def check_text(ids: Tensor, mask: Tensor | None, max_length: int, vocab_size: int) -> None:
    """Refuse texts that are too long, masks that are none, rows that are all padding, ids of another vocabulary."""
    if ids.ndim != 2 or ids.shape[1] == 0 or ids.is_floating_point():
        raise WeftError(f"expected whole word ids of shape (batch, tokens), got {ids.dtype} {tuple(ids.shape)}")
    if ids.shape[1] > max_length:
        raise WeftError(
            f"a text of {ids.shape[1]} tokens is longer than the network's {max_length}; "
            f"truncate it or use max_length={ids.shape[1]}"
        )
    check_mask(mask, tuple(ids.shape), "ids")
    check_range(ids, vocab_size, "word ids", "vocabulary", "use the tokenizer that the network was made with")


def check_vectors(x: Tensor, mask: Tensor | None, max_length: int, dim: int) -> None:
    """The same for embeddings that come from an encoder."""
    if x.ndim != 3 or not 1 <= x.shape[1] <= max_length or x.shape[2] != dim:
        raise WeftError(
            f"expected embeddings of shape (batch, tokens, {dim}), at most {max_length} tokens, got {tuple(x.shape)}"
        )
    check_mask(mask, tuple(x.shape[:2]), "embeddings")


def check_mask(mask: Tensor | None, shape: tuple[int, ...], what: str) -> None:
    """Refuse a mask of another shape or type than (batch, tokens) bool, and rows that are all padding."""
    if mask is not None and (mask.dtype != torch.bool or tuple(mask.shape) != shape):
        raise WeftError(
            f"the mask must be bool, true for real tokens, and {shape} as the {what} are; "
            f"this one is {mask.dtype} {tuple(mask.shape)}"
        )
    if mask is not None and values_known(mask) and not bool(mask.any(1).all()):
        row = int((~mask.any(1)).nonzero()[0])
        raise WeftError(f"row {row} of the batch is all padding; give every text at least one token")


def check_segments(ids: Tensor, segments: Tensor | None, count: int) -> None:
    """Refuse segments of another shape than the ids, or more of them than the network knows."""
    if segments is None or not count:
        return
    if segments.shape != ids.shape:
        raise WeftError(f"the segments must be {tuple(ids.shape)} as the ids are; these are {tuple(segments.shape)}")
    check_range(segments, count, "segments", "network", "number them from 0, or use segments=…")


def check_range(numbers: Tensor, count: int, what: str, whole: str, remedy: str) -> None:
    """Refuse numbers outside of 0…count−1. A GPU checks them itself, and looking would make it wait."""
    if numbers.device.type != "cpu" or not numbers.numel() or not values_known(numbers):
        return
    least, most = int(numbers.min()), int(numbers.max())
    if least < 0 or most >= count:
        raise WeftError(f"{what} from {least} to {most} do not fit a {whole} of {count}; {remedy}")


def values_known(x: Tensor) -> bool:
    """Whether there are values to look at: neither on the meta device nor while torch traces a graph."""
    return x.device.type != "meta" and not torch.compiler.is_compiling()
