"""EfficientNet, NFNet, BiT and HaloNet are timm's: equal outputs and equal gradients for the same random weights."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

import weft
from networks.same_as_timm import SHARED, assert_same
from oracles import import_timm
from weft.networks.registry import REGISTRY

timm = import_timm()

from timm.models._efficientnet_builder import decode_arch_def  # noqa: E402  (after the shim)
from timm.models.efficientnet import EfficientNet  # noqa: E402


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


@pytest.mark.parametrize("name", ["efficientnet_b1", "tf_efficientnet_lite0"])
def test_named_sizes_take_timms_weights(name: str) -> None:
    """T1–T4: every tensor finds its place, and small images show the same numbers."""
    changes: dict[str, Any] = {"img_size": 64} if name != "halonet26t" else {}
    assert_same(timm.create_model(name), weft.create_model(name, **changes), torch.float64, batch=1)


def test_the_names_of_timm_have_timms_shape() -> None:
    """T1: compound scaling rounds as timm's does, in every size."""
    for name in (name for name in REGISTRY if "efficientnet_" in name and not name.endswith("_32")):
        with torch.device("meta"):
            theirs, ours = timm.create_model(name), weft.create_model(name)
        shapes = [[tuple(p.shape) for p in network.parameters() if p.ndim == 4] for network in (theirs, ours)]
        assert [s for s in shapes[0] if s[2:] != (1, 1)] == [s for s in shapes[1] if s[2:] != (1, 1)], name
