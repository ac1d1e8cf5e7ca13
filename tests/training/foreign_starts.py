"""Small trained-looking networks of images as others lay them out, and pictures to fine-tune them on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from weft.networks.base.network import Network
from weft.networks.registry import create_model
from weft.networks.weights import save_weights

MEAN, STD = [0.1, 0.2, 0.3], [0.4, 0.5, 0.6]


def google_vit(folder: Path) -> Path:
    """The .npz of a ViT as Google's JAX code writes it."""
    network = create_model("vit_pico_p4_32", act="gelu_tanh", num_classes=7)
    np.savez(folder / "ViT.npz", **google_arrays(network))  # type: ignore[arg-type]
    return folder / "ViT.npz"


def google_arrays(network: Network) -> dict[str, np.ndarray]:
    state = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    dim, heads = state["class_token"].shape[0], network.config.heads  # type: ignore[attr-defined]
    arrays = {
        "embedding/kernel": state["embed.weight"].transpose(2, 3, 1, 0),
        "embedding/bias": state["embed.bias"],
        "cls": state["class_token"][None, None],
        "Transformer/posembed_input/pos_embedding": state["positions.table"][None],
    }
    pairs = {"norm": "Transformer/encoder_norm", "head": "head"}
    for number in range(network.config.depth):  # type: ignore[attr-defined]
        own, theirs = f"blocks.{number}", f"Transformer/encoderblock_{number}"
        attention = f"{theirs}/MultiHeadDotProductAttention_1"
        pairs |= {f"{own}.norm1": f"{theirs}/LayerNorm_0", f"{own}.norm2": f"{theirs}/LayerNorm_2"}
        pairs |= {f"{own}.channels.fc{n + 1}": f"{theirs}/MlpBlock_3/Dense_{n}" for n in (0, 1)}
        for part, weight, bias in zip(
            ("query", "key", "value"),
            np.split(state[f"{own}.mixer.qkv.weight"], 3),
            np.split(state[f"{own}.mixer.qkv.bias"], 3),
            strict=True,
        ):
            arrays[f"{attention}/{part}/kernel"] = weight.T.reshape(dim, heads, -1)
            arrays[f"{attention}/{part}/bias"] = bias.reshape(heads, -1)
        arrays[f"{attention}/out/kernel"] = state[f"{own}.mixer.out.weight"].T.reshape(heads, -1, dim)
        arrays[f"{attention}/out/bias"] = state[f"{own}.mixer.out.bias"]
    for own, theirs in pairs.items():
        weight = state[f"{own}.weight"]
        arrays[f"{theirs}/{'scale' if weight.ndim == 1 else 'kernel'}"] = weight.T
        arrays[f"{theirs}/bias"] = state[f"{own}.bias"]
    return arrays


def hugging_face_vit(folder: Path) -> Path:
    """A folder of a ViT of a size that nobody has named, which says its colours."""
    shape = {"dim": 24, "depth": 2, "heads": 3, "hidden_dim": 40, "num_classes": 7}
    save_weights(create_model("vit_pico_p4_32", **shape), folder, layout="huggingface")  # type: ignore[arg-type]
    (folder / "preprocessor_config.json").write_text(json.dumps({"image_mean": MEAN, "image_std": STD}))
    return folder


def torchvision_resnet(folder: Path) -> Path:
    """A pickle of the tensors of a ResNet, as torchvision publishes them."""
    network = create_model("resnet18", num_classes=7)
    save_weights(network, folder / "own.safetensors", layout="timm")
    from weft.networks.weights.files import read

    torch.save(read(folder / "own.safetensors").tensors, folder / "resnet18.pth")
    return folder / "resnet18.pth"


def pictures(folder: Path) -> Path:
    """A folder of small pictures in colour, in two classes."""
    chance = np.random.default_rng(0)
    for kind in ("dark", "light"):
        (folder / kind).mkdir(parents=True)
        for number in range(20):
            pixels = chance.integers(0, 90, (12, 12, 3)) + (150 if kind == "light" else 0)
            Image.fromarray(pixels.astype(np.uint8)).save(folder / kind / f"{number}.png")
    return folder
