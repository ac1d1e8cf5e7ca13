"""One small network for each way a registered family can be built, and batches for them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.networks.base.network import Network
from weft.networks.registry import create_model

SIDE, CLASSES, LENGTH, WORDS = 16, 3, 10, 40

_TOKENS: dict[str, Any] = {"dim": 16, "depth": 2, "hidden_dim": 24, "num_classes": CLASSES}
_IMAGE: dict[str, Any] = {"img_size": SIDE, "num_classes": CLASSES}
_TEXT: dict[str, Any] = {"vocab_size": WORDS, "max_length": LENGTH, "num_classes": CLASSES}
_IMAGE_TOKENS, _TEXT_TOKENS = {**_IMAGE, **_TOKENS}, {**_TEXT, **_TOKENS}

_EFFICIENT: dict[str, Any] = {
    "layers": (1, 2),
    "widths": (8, 12),
    "kernels": (3, 5),
    "strides": (1, 2),
    "expansions": (1, 3),
    "stem_width": 8,
    "head_width": 24,
}

IMAGES: dict[str, dict[str, Any]] = {
    "mlp": {**_IMAGE, "hidden": (24, 16), "norm": True},
    "lenet5": {**_IMAGE, "fc": (20,)},
    "lenet_slide": {**_IMAGE, "fc": (20,)},
    "lenet5_local": {**_IMAGE, "fc": (20,)},
    "rcnn_96": {**_IMAGE, "width": 8},
    "resnet18": {**_IMAGE, "widths": (8, 8, 16, 16), "layers": (1, 1, 1, 1)},
    "resnet50_cifar": {**_IMAGE, "widths": (8, 8), "layers": (1, 1)},
    "resnet20_cifar": {**_IMAGE, "widths": (4, 8, 16), "layers": (1, 1, 1)},
    "efficientnet_nano_32": {**_IMAGE, **_EFFICIENT},
    "efficientnet_lite_nano_32": {**_IMAGE, **_EFFICIENT, "padding": "same"},
    "nfnet_nano_32": {**_IMAGE, "layers": (1, 2), "widths": (16, 24), "stem_width": 8, "head_width": 24},
    "bit_nano_32": {**_IMAGE, "layers": (1, 1), "widths": (8, 8)},
    "halonet_nano_32": {**_IMAGE, "stages": ("c", "ac"), "widths": (8, 8), "heads": (2, 2)},
    "vit_nano_p4_32": {**_IMAGE_TOKENS, "heads": 2},
    "deit_pico_distilled_p4_32": {**_IMAGE_TOKENS, "heads": 2},
    "vit_nano_resnet20_32": {**_IMAGE_TOKENS, "stem_layers": (1, 1, 1), "stem_widths": (8, 8, 8)},
    "mixer_nano_p4_32": {**_IMAGE_TOKENS, "token_dim": 12},
    "gmlp_nano_p4_32": _IMAGE_TOKENS,
    "tmlp_nano_p4_32": _IMAGE_TOKENS,
    "tmlp2d_nano_p4_32": _IMAGE_TOKENS,
    "amlp_nano_p4_32": {**_IMAGE_TOKENS, "tiny_attention": 8},
    **{f"control_{mixer}_p4_32": _IMAGE_TOKENS for mixer in ("identity", "random", "pooling", "depthwise")},
}

TEXTS: dict[str, dict[str, Any]] = {
    "bert_tiny": _TEXT_TOKENS,
    "mixer_text_tiny": {**_TEXT_TOKENS, "token_dim": 12},
    "gmlp_text_tiny": _TEXT_TOKENS,
    "tmlp_text_tiny": _TEXT_TOKENS,
    "amlp_text_tiny": {**_TEXT_TOKENS, "tiny_attention": 8},
    **{f"control_{mixer}_text_tiny": _TEXT_TOKENS for mixer in ("identity", "random", "pooling", "depthwise")},
    "lstm_text": {**_TEXT, "dim": 16, "hidden_dim": 16, "depth": 2},
    "conv_text": {**_TEXT, "dim": 16, "channels": 8},
}

SMALL = {**IMAGES, **TEXTS}


def small(name: str, *, seed: int = 0, **changes: Any) -> Network:
    """The small network called `name`, with some settings changed."""
    torch.manual_seed(seed)
    return create_model(name, **{**SMALL[name], **changes})


def shaken(network: Network) -> Network:
    """The same network away from its special start: no weight is exactly zero or one any more."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return network


def lengths_to_mask(lengths: Tensor, total: int) -> Tensor:
    """(batch,) lengths → (batch, total), true for real tokens."""
    return torch.arange(total) < lengths[:, None]


def batch(network: Network, size: int = 6, seed: int = 0) -> dict[str, Tensor]:
    """Arguments for `network(**batch)`."""
    generator = torch.Generator().manual_seed(seed)
    config: Any = network.config
    if config.input == "text":
        ids = torch.randint(0, config.vocab_size, (size, config.max_length), generator=generator)
        lengths = torch.randint(1, config.max_length + 1, (size,), generator=generator)
        return {"x": ids, "mask": lengths_to_mask(lengths, config.max_length)}
    return {"x": torch.randn(size, config.in_chans, *config.img_size, generator=generator)}
