"""Google's `.npz` checkpoints of ViT and MLP-Mixer, written by JAX: read only.

They were trained with the tanh form of GELU and a LayerNorm ε of 1e-6, which the network must have too. Kernels are
(inputs, outputs), those of convolutions (height, width, inputs, outputs), those of attention (channels, heads, width).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from weft.networks.weights.files import Checkpoint
from weft.networks.weights.rules import BATCHED, TOKEN, Adapter, Form, Row, row
from weft.networks.weights.timm import is_mixer, is_vit

JAX: dict[str, Any] = {"act": "gelu_tanh", "norm_eps": 1e-6}


def _read(load: Callable[[list[Tensor]], Tensor]) -> Form:
    def save(tensor: Tensor) -> list[Tensor]:
        raise NotImplementedError("Google's layout is only read")

    return Form(load, save)


CONV = _read(lambda parts: parts[0].permute(3, 2, 0, 1))
KERNEL = _read(lambda parts: parts[0].T)
QKV_KERNEL = _read(lambda parts: torch.cat([part.flatten(1).T for part in parts]))  # each (channels, heads, width)
QKV_BIAS = _read(lambda parts: torch.cat([part.flatten() for part in parts]))
OUT_KERNEL = _read(lambda parts: parts[0].flatten(0, 1).T)  # (heads, width, channels)


def dense(weft: str, foreign: str) -> tuple[Row, Row]:
    return row(f"{weft}.weight", f"{foreign}/kernel", form=KERNEL), row(f"{weft}.bias", f"{foreign}/bias")


def norm(weft: str, foreign: str) -> tuple[Row, Row]:
    return row(f"{weft}.weight", f"{foreign}/scale"), row(f"{weft}.bias", f"{foreign}/bias")


def conv(weft: str, foreign: str) -> tuple[Row, Row]:
    return row(f"{weft}.weight", f"{foreign}/kernel", form=CONV), row(f"{weft}.bias", f"{foreign}/bias")


def attention(weft: str, foreign: str) -> tuple[Row, ...]:
    kernels, biases = (
        [f"{foreign}/{part}/{kind}" for part in ("query", "key", "value")] for kind in ("kernel", "bias")
    )
    return (
        row(f"{weft}.qkv.weight", *kernels, form=QKV_KERNEL),
        row(f"{weft}.qkv.bias", *biases, form=QKV_BIAS),
        row(f"{weft}.out.weight", f"{foreign}/out/kernel", form=OUT_KERNEL),
        row(f"{weft}.out.bias", f"{foreign}/out/bias"),
    )


def without_optimiser(name: str) -> str:
    """Checkpoints that were saved with their optimiser keep the network below `opt/target/`."""
    return name.removeprefix("opt/target/")


QUERY = "Transformer/encoderblock_0/MultiHeadDotProductAttention_1/query/kernel"


def known_vit(checkpoint: Checkpoint) -> dict[str, Any]:
    """The kernels of attention show the number of heads."""
    return {**JAX, "heads": checkpoint.tensors[QUERY].shape[1]}


BLOCK = "Transformer/encoderblock_{n}"

VIT = Adapter(
    layout="Google",
    holds="ViT",
    marks=frozenset({"embedding/kernel", QUERY}),
    fits=is_vit,
    known=known_vit,
    head=("head/kernel", "head/bias", "pre_logits/kernel", "pre_logits/bias"),
    rename=without_optimiser,
    table=(
        *conv("embed", "embedding"),
        row("class_token", "cls", form=TOKEN),
        row("positions.table", "Transformer/posembed_input/pos_embedding", form=BATCHED),
        *norm("blocks.{n}.norm1", f"{BLOCK}/LayerNorm_0"),
        *attention("blocks.{n}.mixer", f"{BLOCK}/MultiHeadDotProductAttention_1"),
        *norm("blocks.{n}.norm2", f"{BLOCK}/LayerNorm_2"),
        *dense("blocks.{n}.channels.fc1", f"{BLOCK}/MlpBlock_3/Dense_0"),
        *dense("blocks.{n}.channels.fc2", f"{BLOCK}/MlpBlock_3/Dense_1"),
        *norm("norm", "Transformer/encoder_norm"),
        *dense("head", "head"),
    ),
)

MIXER = Adapter(
    layout="Google",
    holds="Mixer",
    marks=frozenset({"stem/kernel", "MixerBlock_0/token_mixing/Dense_0/kernel"}),
    fits=is_mixer,
    known=lambda checkpoint: JAX,
    head=("head/kernel", "head/bias"),
    rename=without_optimiser,
    table=(
        *conv("embed", "stem"),
        *norm("blocks.{n}.norm1", "MixerBlock_{n}/LayerNorm_0"),
        *dense("blocks.{n}.mixer.fc1", "MixerBlock_{n}/token_mixing/Dense_0"),
        *dense("blocks.{n}.mixer.fc2", "MixerBlock_{n}/token_mixing/Dense_1"),
        *norm("blocks.{n}.norm2", "MixerBlock_{n}/LayerNorm_1"),
        *dense("blocks.{n}.channels.fc1", "MixerBlock_{n}/channel_mixing/Dense_0"),
        *dense("blocks.{n}.channels.fc2", "MixerBlock_{n}/channel_mixing/Dense_1"),
        *norm("norm", "pre_head_layer_norm"),
        *dense("head", "head"),
    ),
)

ADAPTERS = (VIT, MIXER)
