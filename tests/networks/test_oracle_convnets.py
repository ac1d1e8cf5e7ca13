"""EfficientNet, NFNet, BiT and HaloNet are timm's: equal outputs and equal gradients for the same random weights."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

import weft
from networks.same_as_timm import SHARED, assert_same
from oracles import import_timm
from weft.networks.weights.save import foreign_tensors

timm = import_timm()

from timm.layers import StdConv2d  # noqa: E402
from timm.models._efficientnet_builder import decode_arch_def  # noqa: E402  (after the shim)
from timm.models.byobnet import ByoBlockCfg, ByobNet, ByoModelCfg  # noqa: E402
from timm.models.efficientnet import EfficientNet  # noqa: E402
from timm.models.nfnet import NormFreeNet, _dm_nfnet_cfg  # noqa: E402
from timm.models.resnetv2 import ResNetV2  # noqa: E402


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("padding", ["both", "same"])
@pytest.mark.parametrize("lite", [False, True])
def test_efficientnet_equals_timm(lite: bool, padding: str, train: bool) -> None:
    """T1: with and without squeeze-and-excitation, with both paddings, on sides that the strides do not divide."""
    se = "" if lite else "_se0.25"
    stages = [f"ds_r1_k3_s1_e1_c8{se}", f"ir_r2_k5_s2_e6_c16{se}", f"ir_r2_k3_s2_e4_c24{se}"]
    eps, pad = (1e-3, "same") if padding == "same" else (1e-5, "")
    theirs = EfficientNet(
        decode_arch_def([[stage] for stage in stages]),
        num_features=40,
        stem_size=16,
        act_layer=torch.nn.ReLU6 if lite else torch.nn.SiLU,
        norm_layer=partial(torch.nn.BatchNorm2d, eps=eps),
        pad_type=pad,
        **SHARED,
    )
    ours = weft.create_model(
        "efficientnet_lite0" if lite else "efficientnet_b0",
        img_size=(21, 30),
        layers=(1, 2, 2),
        widths=(8, 16, 24),
        kernels=(3, 5, 3),
        strides=(1, 2, 2),
        expansions=(1, 6, 4),
        stem_width=16,
        head_width=40,
        padding=padding,
        norm_eps=eps,
        **SHARED,
    )
    assert_same(theirs, ours, torch.float64, train=train)


def test_nfnet_equals_timm() -> None:
    """T2: several blocks a stage, so that the expected variance grows and is reset; several groups; an odd side."""
    settings = _dm_nfnet_cfg(depths=(1, 2, 2, 1), channels=(32, 64, 96, 96))
    theirs = NormFreeNet(settings, stem_chs=32, group_size=16, num_features=64, **SHARED)
    ours = weft.create_model(
        "dm_nfnet_f0",
        img_size=(41, 50),
        layers=(1, 2, 2, 1),
        widths=(32, 64, 96, 96),
        stem_width=32,
        group_size=16,
        head_width=64,
        **SHARED,
    )
    assert_same(theirs, ours, torch.float64)


def test_bit_equals_timm() -> None:
    """T3: standardised filters, group norm, zeros before the pooling, an odd side."""
    shape: dict[str, Any] = {"layers": (1, 2, 1), "channels": (128, 128, 256)}
    theirs = ResNetV2(**shape, stem_chs=32, stem_type="fixed", conv_layer=partial(StdConv2d, eps=1e-8), **SHARED)
    ours = weft.create_model("resnetv2_50x1_bit", img_size=(33, 50), layers=(1, 2, 1), widths=(32, 32, 64), **SHARED)
    assert_same(theirs, ours, torch.float64)


@pytest.mark.parametrize("train", [False, True])
def test_halonet_equals_timm(train: bool) -> None:
    """T4: attention with and without a stride, blocks at the border and inside, another number of heads a stage."""
    kinds = {"c": "bottle", "a": "self_attn"}
    stages = (("c", 32, 8), ("ca", 64, 4), ("ac", 64, 8))
    blocks = tuple(
        tuple(
            ByoBlockCfg(
                type=kinds[kind], d=1, c=4 * width, s=min(number + 1, 2), gs=0, br=0.25, **heads_of(kind, heads)
            )
            for kind in letters
        )
        for number, (letters, width, heads) in enumerate(stages)
    )
    settings = ByoModelCfg(
        blocks=blocks,
        stem_chs=32,
        stem_type="tiered",
        stem_pool="maxpool",
        act_layer="silu",
        self_attn_layer="halo",
    )
    theirs = ByobNet(settings, **SHARED)
    ours = weft.create_model(
        "halonet50ts",
        img_size=(32, 48),
        stages=tuple(letters for letters, _, _ in stages),
        widths=(32, 64, 64),
        heads=(8, 4, 8),
        block=2,
        halo=1,
        **SHARED,
    )
    assert_same(theirs, ours, torch.float64, train=train)


def heads_of(kind: str, heads: int) -> dict[str, Any]:
    """How timm is told the heads of one block."""
    attention = {"block_size": 2, "halo_size": 1, "num_heads": heads}
    return {"self_attn_layer": "halo", "self_attn_kwargs": attention} if kind == "a" else {}


@pytest.mark.parametrize(
    "name",
    [
        "efficientnet_b2",
        "tf_efficientnet_lite4",
        "dm_nfnet_f1",
        "resnetv2_50x3_bit",
        "halonet26t",
        "halonet50ts",
        "deit_tiny_distilled_patch16_224",
    ],
)
def test_named_sizes_have_timms_tensors(name: str) -> None:
    """T1–T5: saved in timm's layout, every tensor has timm's name and shape, and none is left over."""
    with torch.device("meta"):
        theirs, ours = timm.create_model(name), weft.create_model(name)
    stored = {key: tensor.shape for key, tensor in foreign_tensors(ours, "timm").items()}
    assert stored == {key: tensor.shape for key, tensor in theirs.state_dict().items()}
