"""weft's Mixer, gMLP, ViT and ResNet are timm's: equal outputs and equal gradients for the same random weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import weft
from networks.same_as_timm import SHARED, assert_same, images, randomise
from oracles import import_timm
from weft.networks.base.network import Network
from weft.networks.weights import load_weights

timm = import_timm()

from timm.layers import GatedMlp  # noqa: E402  (after the shim)
from timm.models.deit import VisionTransformerDistilled  # noqa: E402
from timm.models.mlp_mixer import MlpMixer, SpatialGatingBlock  # noqa: E402
from timm.models.resnet import BasicBlock, Bottleneck, ResNet  # noqa: E402
from timm.models.vision_transformer import VisionTransformer  # noqa: E402


def small_mixer() -> tuple[nn.Module, Network]:
    """S = 6 tokens, D_S = 12: the two widths cannot be swapped unseen."""
    theirs = MlpMixer(img_size=(8, 12), patch_size=4, num_blocks=3, embed_dim=24, mlp_ratio=(0.5, 3.0), **SHARED)
    shape: dict[str, Any] = {"img_size": (8, 12), "patch_size": 4, "depth": 3, "dim": 24, "hidden_dim": 72}
    return theirs, weft.create_model("mixer_nano_p4_32", token_dim=12, **shape, **SHARED)


def small_gmlp() -> tuple[nn.Module, Network]:
    gated: dict[str, Any] = {"block_layer": SpatialGatingBlock, "mlp_layer": GatedMlp, "mlp_ratio": 4}
    theirs = MlpMixer(img_size=16, patch_size=4, num_blocks=3, embed_dim=24, **gated, **SHARED)
    ours = weft.create_model("gmlp_nano_p4_32", img_size=16, depth=3, dim=24, hidden_dim=96, **SHARED)
    return theirs, ours


def small_vit() -> tuple[nn.Module, Network]:
    theirs = VisionTransformer(img_size=(8, 12), patch_size=4, embed_dim=24, depth=3, num_heads=4, **SHARED)
    shape: dict[str, Any] = {"img_size": (8, 12), "depth": 3, "dim": 24, "heads": 4, "hidden_dim": 96}
    return theirs, weft.create_model("vit_nano_p4_32", **shape, **SHARED)


def small_resnet(block: str) -> tuple[nn.Module, Network]:
    theirs = ResNet({"basic": BasicBlock, "bottleneck": Bottleneck}[block], [1, 2, 1, 1], **SHARED)
    return theirs, weft.create_model("resnet18", block=block, layers=(1, 2, 1, 1), img_size=32, **SHARED)


def named(name: str) -> tuple[nn.Module, Network]:
    return timm.create_model(name), weft.create_model(name)


def small_deit() -> tuple[nn.Module, Network]:
    theirs = VisionTransformerDistilled(img_size=(8, 12), patch_size=4, embed_dim=24, depth=3, num_heads=4, **SHARED)
    shape: dict[str, Any] = {"img_size": (8, 12), "depth": 3, "dim": 24, "heads": 4, "hidden_dim": 96}
    return theirs, weft.create_model("deit_pico_distilled_p4_32", **shape, **SHARED)


SMALL = {"deit": small_deit, "mixer": small_mixer, "gmlp": small_gmlp, "vit": small_vit}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("family", SMALL)
def test_token_networks_equal_timm(family: str, dtype: torch.dtype) -> None:
    """M1, M2, A3, T5, at non-square sizes, odd channels and classes."""
    assert_same(*SMALL[family](), dtype)


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("block", ["basic", "bottleneck"])
def test_resnet_equals_timm(block: str, train: bool) -> None:
    """C4, with running statistics and with the batch's own."""
    assert_same(*small_resnet(block), torch.float64, train=train)


def test_the_two_heads_of_deit_are_timms() -> None:
    """T5: apart in training, their mean in use."""
    theirs, ours = small_deit()
    randomise(theirs)
    load_weights(ours, theirs.state_dict())
    theirs.set_distilled_training(True)
    x = images(ours, 2, torch.float32)
    for want, got in zip(theirs.train()(x), ours.forward_heads(ours.forward_features(x)), strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("name", ["mixer_s16_224", "gmlp_ti16_224", "vit_tiny_patch16_224", "resnet18"])
def test_named_sizes_equal_timm(name: str) -> None:
    assert_same(*named(name), torch.float32, batch=1)
