"""Counts by formula against the networks themselves and torch's counter, on the meta device (M8, E1)."""

from __future__ import annotations

import pytest

from weft.networks.measure.cost import stages, total_macs, total_parameters
from weft.networks.measure.description import describe
from weft.networks.registry import REGISTRY, configured

ONE_OF_EACH = [
    "mlp",
    "lenet5",
    "lenet5_local",
    "filternet",
    "rcnn_96",
    "resnet18",
    "resnet50",
    "resnet18_cifar",
    "resnet20_cifar",
    "efficientnet_b0",
    "efficientnet_lite0",
    "efficientnet_nano_32",
    "dm_nfnet_f0",
    "nfnet_nano_32",
    "resnetv2_50x1_bit",
    "bit_nano_32",
    "halonet26t",
    "halonet50ts",
    "halonet_nano_32",
    "vit_tiny_patch16_224",
    "deit_tiny_distilled_patch16_224",
    "vit_nano_resnet20_32",
    "mixer_s32_224",
    "control_identity_p4_32",
    "control_random_p4_32",
    "control_pooling_p4_32",
    "control_depthwise_p4_32",
    "gmlp_nano_p4_32",
    "tmlp_nano_p4_32",
    "tmlp2d_nano_p4_32",
    "amlp_nano_p4_32",
    "bert_tiny",
    "gmlp_text_tiny",
    "amlp_text_tiny",
    "mixer_text_tiny",
    "control_depthwise_text_tiny",
    "conv_text",
]

TABLES = ("efficientnet_b0", "tf_efficientnet_lite0", "dm_nfnet_f0", "resnetv2_50x1_bit")  # of any side above 31


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_formula_counter_and_network_agree_in_every_stage(name: str) -> None:
    """M8: parameters and multiply-adds of each stage, by formula and as torch counts them."""
    for row in describe(REGISTRY[name]).rows:
        assert row.stage.parameters * row.stage.count == row.counted_parameters, row.stage
        assert row.stage.macs * row.stage.count == row.counted_macs, row.stage


@pytest.mark.parametrize("side", [33, 50, 65])
@pytest.mark.parametrize("name", [*("resnet18", "resnet50", "resnet20_cifar", "rcnn_96", "lenet5"), *TABLES])
def test_formulas_hold_for_odd_sides(name: str, side: int) -> None:
    description = describe(configured(name, img_size=side))
    assert description.macs == description.counted_macs


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("resnet50_cifar", {"padded": True}),
        ("resnet18_cifar", {"widths": (8, 8, 8, 8), "img_size": 3}),  # a stride that no longer halves
        ("vit_nano_resnet20_32", {"stem": "imagenet", "stem_layers": (1, 2), "img_size": (32, 64)}),
    ],
)
def test_formulas_hold_for_other_shortcuts_and_stems(name: str, change: dict[str, object]) -> None:
    """C4, A5."""
    description = describe(configured(name, **change))
    assert description.macs == description.counted_macs
    assert total_parameters(description.config) == description.parameters


@pytest.mark.parametrize("side", [32, 40])
def test_formulas_hold_for_a_grid_that_halos_do_not_divide(side: int) -> None:
    """T4: 8×8 tokens are whole blocks, 10×10 are filled up."""
    changes = {"mixer": "halo", "class_token": False, "pool": "mean", "depth": 2, "img_size": side}
    description = describe(configured("vit_nano_p4_32", **changes))
    assert description.macs == description.counted_macs
    assert total_parameters(description.config) == description.parameters


@pytest.mark.parametrize("change", [{"gate": "linear"}, {"gate": "multiplicative"}, {"tiny_attention": 32}])
def test_formulas_hold_for_every_gate(change: dict[str, object]) -> None:
    description = describe(configured("gmlp_nano_p4_32", depth=2, **change))
    assert description.macs == description.counted_macs
    assert total_parameters(description.config) == description.parameters


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("mlp", {}),
        ("lenet5_local", {}),
        ("filternet", {"hidden": (4, 4)}),
        ("mixer_nano_p4_32", {"depth": 2}),
        ("gmlp_nano_p4_32", {"depth": 2}),
        ("bert_tiny", {}),
    ],
)
def test_formulas_count_the_slopes_of_prelu(name: str, change: dict[str, object]) -> None:
    """F2: an activation with a parameter."""
    for row in describe(configured(name, act="prelu", **change)).rows:
        assert row.stage.parameters * row.stage.count == row.counted_parameters, row.stage


def test_lstm_is_counted_by_formula_alone() -> None:
    description = describe(REGISTRY["lstm_text"])
    assert description.counted_macs is None
    assert total_parameters(description.config) == description.parameters
    assert description.macs > 0


def test_published_cost_formulas_per_layer() -> None:
    """M8: Mixer 2·D_S·S·C + 2·D_C·S·C; gMLP unsplit 2·D_C·S·C + D_C·S²; split 1.5·D_C·S·C + D_C·S²/2."""

    def block(name: str, **changes: object) -> int:
        return next(stage.macs for stage in stages(configured(name, **changes)) if stage.module == "blocks")

    s, c, d_s, d_c = 64, 128, 64, 512
    assert block("mixer_nano_p4_32") == 2 * d_s * s * c + 2 * d_c * s * c
    e = 768
    assert block("gmlp_nano_p4_32", gate="multiplicative") == 2 * e * s * c + e * s * s
    assert block("gmlp_nano_p4_32") == 1.5 * e * s * c + e * s * s / 2


def test_attention_is_quadratic_in_tokens_and_mixer_is_not() -> None:
    """M8: four times the tokens: attention's own share grows 16-fold, Mixer's cost 4-fold at equal D_S."""

    def attention_core(side: int) -> int:
        tokens, dim = (side // 4) ** 2, 192
        block = next(
            s.macs
            for s in stages(configured("vit_nano_p4_32", img_size=side, class_token=False, pool="mean"))
            if s.module == "blocks"
        )
        return block - 4 * tokens * dim**2 - 2 * tokens * dim * 384

    assert attention_core(64) == 16 * attention_core(32)
    body = [total_macs(configured("mixer_nano_p4_32", img_size=side, num_classes=0)) for side in (32, 64)]
    assert body[1] == 4 * body[0]
