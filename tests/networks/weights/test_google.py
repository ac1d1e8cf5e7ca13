"""Google's .npz files of ViT and Mixer, held against timm's own reader and against the formulas in numpy."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import weft
from oracles import import_timm
from weft.errors import WeftError
from weft.networks.base.network import Network
from weft.networks.weights import load_weights

Arrays = dict[str, np.ndarray]
CHANNELS, HEADS, HIDDEN, TOKEN_HIDDEN, PATCH, CLASSES, DEPTH = 24, 4, 40, 10, 4, 5, 2
ROWS, COLUMNS = 3, 3
SHAPE: dict[str, Any] = {
    "dim": CHANNELS,
    "depth": DEPTH,
    "hidden_dim": HIDDEN,
    "patch_size": PATCH,
    "img_size": (ROWS * PATCH, COLUMNS * PATCH),
    "num_classes": CLASSES,
    "act": "gelu_tanh",
}


class Draw:
    """Random arrays, named as in the published checkpoints."""

    def __init__(self) -> None:
        self.random, self.arrays = np.random.default_rng(0), Arrays()

    def __call__(self, name: str, *shape: int) -> None:
        fan_in = math.prod(shape[:-1]) if len(shape) > 1 else 4
        self.arrays[name] = (self.random.standard_normal(shape) / math.sqrt(fan_in)).astype(np.float32)

    def dense(self, name: str, inputs: int, outputs: int) -> None:
        self(f"{name}/kernel", inputs, outputs)
        self(f"{name}/bias", outputs)

    def norm(self, name: str) -> None:
        self(f"{name}/scale", CHANNELS)
        self(f"{name}/bias", CHANNELS)


def vit_arrays() -> Arrays:
    draw, width = Draw(), CHANNELS // HEADS
    draw("embedding/kernel", PATCH, PATCH, 3, CHANNELS)
    draw("embedding/bias", CHANNELS)
    draw("cls", 1, 1, CHANNELS)
    draw("Transformer/posembed_input/pos_embedding", 1, ROWS * COLUMNS + 1, CHANNELS)
    for block in (f"Transformer/encoderblock_{n}" for n in range(DEPTH)):
        draw.norm(f"{block}/LayerNorm_0")
        for part in ("query", "key", "value"):
            draw(f"{block}/MultiHeadDotProductAttention_1/{part}/kernel", CHANNELS, HEADS, width)
            draw(f"{block}/MultiHeadDotProductAttention_1/{part}/bias", HEADS, width)
        draw(f"{block}/MultiHeadDotProductAttention_1/out/kernel", HEADS, width, CHANNELS)
        draw(f"{block}/MultiHeadDotProductAttention_1/out/bias", CHANNELS)
        draw.norm(f"{block}/LayerNorm_2")
        draw.dense(f"{block}/MlpBlock_3/Dense_0", CHANNELS, HIDDEN)
        draw.dense(f"{block}/MlpBlock_3/Dense_1", HIDDEN, CHANNELS)
    draw.norm("Transformer/encoder_norm")
    draw.dense("head", CHANNELS, CLASSES)
    return draw.arrays


def mixer_arrays() -> Arrays:
    draw, tokens = Draw(), ROWS * COLUMNS
    draw("stem/kernel", PATCH, PATCH, 3, CHANNELS)
    draw("stem/bias", CHANNELS)
    for block in (f"MixerBlock_{n}" for n in range(DEPTH)):
        draw.norm(f"{block}/LayerNorm_0")
        draw.dense(f"{block}/token_mixing/Dense_0", tokens, TOKEN_HIDDEN)
        draw.dense(f"{block}/token_mixing/Dense_1", TOKEN_HIDDEN, tokens)
        draw.norm(f"{block}/LayerNorm_1")
        draw.dense(f"{block}/channel_mixing/Dense_0", CHANNELS, HIDDEN)
        draw.dense(f"{block}/channel_mixing/Dense_1", HIDDEN, CHANNELS)
    draw.norm("pre_head_layer_norm")
    draw.dense("head", CHANNELS, CLASSES)
    return draw.arrays


def mixer_in_numpy(arrays: Arrays, images: np.ndarray) -> np.ndarray:
    """Tolstikhin et al. 2021, appendix E, over images (batch, height, width, 3), in double precision."""
    p = {name: array.astype(np.float64) for name, array in arrays.items()}

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6) * p[f"{name}/scale"] + p[f"{name}/bias"]

    def mlp(x: np.ndarray, name: str) -> np.ndarray:
        x = x @ p[f"{name}/Dense_0/kernel"] + p[f"{name}/Dense_0/bias"]
        x = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
        return x @ p[f"{name}/Dense_1/kernel"] + p[f"{name}/Dense_1/bias"]

    patches = images.reshape(-1, ROWS, PATCH, COLUMNS, PATCH, 3)
    x = np.einsum("brpcqi,pqio->brco", patches, p["stem/kernel"]) + p["stem/bias"]
    x = x.reshape(len(images), ROWS * COLUMNS, CHANNELS)
    for block in (f"MixerBlock_{n}" for n in range(DEPTH)):
        x = x + mlp(norm(x, f"{block}/LayerNorm_0").swapaxes(1, 2), f"{block}/token_mixing").swapaxes(1, 2)
        x = x + mlp(norm(x, f"{block}/LayerNorm_1"), f"{block}/channel_mixing")
    return norm(x, "pre_head_layer_norm").mean(1) @ p["head/kernel"] + p["head/bias"]


def written(arrays: Arrays, folder: Path) -> Path:
    np.savez(folder / "weights.npz", **arrays)  # type: ignore[arg-type]
    return folder / "weights.npz"


def vit(**changes: Any) -> Network:
    return weft.create_model("vit_nano_p4_32", **{**SHAPE, "heads": HEADS, **changes}).eval()


def mixer(**changes: Any) -> Network:
    return weft.create_model("mixer_nano_p4_32", **{**SHAPE, "token_dim": TOKEN_HIDDEN, **changes}).eval()


def test_mixer_equals_the_formulas(tmp_path: Path) -> None:
    arrays, network = mixer_arrays(), mixer().double()
    load_weights(network, written(arrays, tmp_path))
    images = np.random.default_rng(1).standard_normal((2, ROWS * PATCH, COLUMNS * PATCH, 3))
    got = network(torch.from_numpy(images).permute(0, 3, 1, 2)).detach().numpy()
    np.testing.assert_allclose(got, mixer_in_numpy(arrays, images), rtol=1e-10, atol=1e-12)


def test_vit_equals_what_timm_reads(tmp_path: Path) -> None:
    import_timm()
    from timm.models.vision_transformer import VisionTransformer

    path, network = written(vit_arrays(), tmp_path), vit()
    load_weights(network, path)
    shape: dict[str, Any] = {"img_size": ROWS * PATCH, "patch_size": PATCH, "embed_dim": CHANNELS, "depth": DEPTH}
    theirs = VisionTransformer(
        **shape, num_heads=HEADS, mlp_ratio=HIDDEN / CHANNELS, num_classes=CLASSES, act_layer="gelu_tanh"
    ).eval()
    theirs.load_pretrained(str(path))
    images = torch.randn(2, 3, ROWS * PATCH, COLUMNS * PATCH)
    torch.testing.assert_close(network(images), theirs(images), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("change", [{"act": "gelu"}, {"norm_eps": 1e-5}])
def test_the_erf_gelu_and_another_epsilon_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    """JAX computes GELU by tanh and normalises with ε 1e-6; the shapes do not tell."""
    (name, _), *_ = change.items()
    for arrays, build in ((vit_arrays(), vit), (mixer_arrays(), mixer)):
        with pytest.raises(WeftError, match=f"made with {name}="):
            load_weights(build(**change), written(arrays, tmp_path))


def test_the_heads_are_read_from_the_kernels(tmp_path: Path) -> None:
    with pytest.raises(WeftError, match="heads=4"):
        load_weights(vit(heads=2), written(vit_arrays(), tmp_path))


def test_a_representation_layer_goes_with_its_head_only(tmp_path: Path) -> None:
    """ImageNet-21k checkpoints have a tanh layer before the head, which no network here has."""
    draw = Draw()
    draw.dense("pre_logits", CHANNELS, CHANNELS)
    path = written(vit_arrays() | draw.arrays, tmp_path)
    with pytest.raises(WeftError, match="pre_logits/kernel"):
        load_weights(vit(), path)
    with pytest.warns(UserWarning, match="5 classes and the network 3: its head starts fresh"):
        load_weights(vit(num_classes=3), path)
