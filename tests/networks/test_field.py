"""The theoretical receptive field against closed forms and against gradients (C7)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import weft
from weft.networks.measure.receptive_field import Layer, grow, receptive_field
from weft.networks.registry import REGISTRY, configured


def test_stride_one_is_the_primers_formula() -> None:
    """C7: ERF_now = RF_now + ERF_before − 1."""
    field = 1
    for found, kernel in zip(grow(Layer(str(k), k) for k in (3, 5, 7)), (3, 5, 7), strict=True):
        field = kernel + field - 1
        assert found.side == field


@pytest.mark.parametrize(
    ("name", "side"),
    [("resnet18", 435), ("resnet34", 899), ("resnet50", 427), ("resnet101", 971), ("lenet5", 16)],
)
def test_known_fields(name: str, side: int) -> None:
    """Araujo et al. 2019 give 435, 899, 483, 1027 for ResNet-18, 34, 50, 101; with the stride in the 3×3 convolution
    of a bottleneck, as torchvision and timm have it, 50 and 101 come to 427 and 971."""
    assert receptive_field(REGISTRY[name])[-1].side == side


layer = st.builds(Layer, st.just("conv"), st.integers(1, 4), st.integers(1, 3), st.integers(1, 2))


@settings(max_examples=40, deadline=None)
@given(st.lists(layer, min_size=1, max_size=4))
def test_field_is_what_the_gradient_reaches(layers: list[Layer]) -> None:
    """C7: with all weights positive, exactly the field of one output has a gradient."""
    chain = nn.Sequential(
        *[nn.Conv1d(1, 1, l.kernel or 1, stride=l.stride, dilation=l.dilation, bias=False) for l in layers]
    )
    for parameter in chain.parameters():
        nn.init.ones_(parameter)
    expected = grow(layers)[-1]
    assert expected.side is not None
    x = torch.ones(1, 1, expected.side + 3 * expected.stride, requires_grad=True, dtype=torch.float32)
    chain(x)[0, 0, 1].backward()
    reached = x.grad[0, 0].nonzero()  # type: ignore[index]
    assert int(reached.max() - reached.min()) + 1 == expected.side
    assert int(reached.min()) == expected.stride


def test_fields_of_conv_networks_reach_as_far_as_gradients_do() -> None:
    """C7 on whole networks: no input outside of the theoretical field can change an output."""
    network = weft.create_model("resnet20_cifar", img_size=96, layers=(1, 1, 1)).eval()
    x = torch.randn(1, 3, 96, 96, requires_grad=True)
    network.forward_features(x)[0, :, 12, 12].sum().backward()
    assert x.grad is not None
    columns = x.grad.abs().sum((0, 1, 2)).nonzero()
    side = receptive_field(network.config)[-1].side
    assert side is not None and 0 < int(columns.max() - columns.min()) + 1 <= side


ATTENDING: dict[str, Any] = {"stages": ("c", "ca", "a"), "widths": (16, 16, 16), "heads": (2, 2, 2)}
ATTENDING["zero_init_last"] = False  # which would cut the branches off


@pytest.mark.parametrize(
    ("name", "changes", "place"),
    [
        ("efficientnet_lite_nano_32", {"img_size": 160}, 10),
        ("halonet_nano_32", {**ATTENDING, "img_size": 96}, 12),
    ],
)
def test_fields_of_lite_and_halonet_hold_what_gradients_reach(name: str, changes: dict[str, Any], place: int) -> None:
    """T1, T4: attention in blocks reaches no farther than its window, wherever in the block a pixel lies."""
    torch.manual_seed(0)
    network = weft.create_model(name, **changes).eval()
    side = network.config.img_size[0]
    x = torch.randn(1, 3, side, side, requires_grad=True)
    network.forward_features(x)[0, :, place, place].sum().backward()
    assert x.grad is not None
    columns = x.grad.abs().sum((0, 1, 2)).nonzero()
    field = receptive_field(network.config)[-1].side
    assert field is not None and 0 < int(columns.max() - columns.min()) + 1 <= min(field, side)


def test_what_is_pooled_over_the_image_sees_all_of_it() -> None:
    """T1–T3: squeeze-and-excitation and group norm bring the whole image to every value; Lite has neither."""
    names = ("efficientnet_b0", "dm_nfnet_f0", "resnetv2_50x1_bit")
    assert [receptive_field(REGISTRY[name])[-1].side for name in names] == [None, None, None]
    assert receptive_field(REGISTRY["efficientnet_lite0"])[-1].side == 851
    assert [field.stride for name in names for field in receptive_field(REGISTRY[name])[-1:]] == [32, 32, 32]


def test_mixing_sees_everything_and_identity_sees_a_patch() -> None:
    assert receptive_field(REGISTRY["mixer_nano_p4_32"])[1].side is None
    assert receptive_field(REGISTRY["gmlp_nano_p4_32"])[1].side is None
    assert receptive_field(REGISTRY["control_identity_p4_32"])[-1].side == 4
    assert receptive_field(configured("control_depthwise_p4_32", depth=2))[-1].side == 4 + 2 * 6 * 4
