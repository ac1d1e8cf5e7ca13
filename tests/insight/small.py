"""Small subjects of every family, untrained, on digits or on a few made sentences; made once a session of tests."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from training.runs import sentences
from weft.insight.subject import Subject, open_subject

TOKENS = {"dim": 16, "depth": 2, "hidden_dim": 32, "img_size": 8, "in_chans": 1, "patch_size": 2}
TEXT = {"dim": 16, "depth": 2, "hidden_dim": 32, "max_length": 24, "vocab_size": 300}
SETTINGS: dict[str, dict[str, Any]] = {
    "vit_pico_p4_32": {**TOKENS, "heads": 2},
    "mixer_pico_p4_32": {**TOKENS, "token_dim": 24},
    "gmlp_pico_p4_32": TOKENS,
    "tmlp2d_pico_p4_32": TOKENS,
    "control_depthwise_pico_p4_32": TOKENS,
    "control_pooling_pico_p4_32": TOKENS,
    "control_random_pico_p4_32": TOKENS,
    "control_identity_pico_p4_32": TOKENS,
    "resnet8_cifar": {"layers": [1, 1], "widths": [8, 16], "img_size": 8, "in_chans": 1},
    "efficientnet_nano_32": {
        "layers": [1, 1],
        "widths": [8, 12],
        "kernels": [3, 3],
        "strides": [1, 2],
        "expansions": [1, 2],
        "stem_width": 8,
        "head_width": 12,
        "img_size": 8,
        "in_chans": 1,
    },
    "nfnet_nano_32": {
        "layers": [1, 1],
        "widths": [8, 8],
        "stem_width": 8,
        "head_width": 8,
        "img_size": 8,
        "in_chans": 1,
    },
    "bit_nano_32": {"layers": [1, 1], "widths": [8, 8], "img_size": 8, "in_chans": 1},
    "halonet_nano_32": {
        "stages": ["c", "ca"],
        "widths": [8, 8],
        "heads": [2, 2],
        "block": 2,
        "img_size": 8,
        "in_chans": 1,
    },
    "deit_pico_distilled_p4_32": {**TOKENS, "heads": 2},
    "lenet5_local": {"img_size": 16, "channels": [2, 3], "fc": [8]},
    "mlp": {"hidden": [16], "img_size": 8, "in_chans": 1},
    "bert_tiny": {**TEXT, "heads": 2},
    "gmlp_text_tiny": TEXT,
    "amlp_text_tiny": {**TEXT, "tiny_attention": 8},
    "mixer_text_tiny": {**TEXT, "token_dim": 20},
}


@cache
def subject_of(name: str, **changes: Any) -> Subject:
    """An untrained network with weights large enough for what is measured to differ from layer to layer."""
    settings = {**SETTINGS[name], **changes}
    source = str(sentences()) if "vocab_size" in settings else "digits"
    subject = open_subject(name, source, settings=settings)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in subject.network.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return subject
