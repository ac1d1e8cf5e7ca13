"""Every parameter count of the papers and public models, to the last parameter, on the meta device (E1)."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch

from weft.networks.base.network import Network
from weft.networks.bert import PretrainingHeads
from weft.networks.registry import create_model


def on_meta(name: str, **changes: Any) -> Network:
    with torch.device("meta"):
        return create_model(name, **changes)


def count(network: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


MIXER = {  # M1: total with 1000 classes, and without the head
    "s32": (19_104_624, 18_591_624),
    "s16": (18_528_264, 18_015_264),
    "b32": (60_293_428, 59_524_428),
    "b16": (59_880_472, 59_111_472),
    "l32": (206_939_264, 205_914_264),
    "l16": (208_196_168, 207_171_168),
    "h14": (432_350_952, 431_069_952),
}

GMLP = {  # M2, M5, M6: gMLP, tMLP, 2-D Toeplitz, aMLP, and gMLP without the split
    "ti16": (5_867_328, 4_726_578, 4_736_718, 7_359_168, 7_364_928),
    "s16": (19_422_656, 18_281_906, 18_292_046, 22_400_576, 25_366_976),
    "b16": (73_075_392, 71_934_642, 71_944_782, 79_025_472, 96_760_512),
}

VIT = {  # A3
    "tiny_patch16_224": 5_717_416,
    "small_patch16_224": 22_050_664,
    "small_patch32_224": 22_878_952,
    "base_patch16_224": 86_567_656,
    "base_patch32_224": 88_224_232,
    "large_patch16_224": 304_326_632,
    "large_patch32_224": 306_535_400,
    "huge_patch14_224": 632_045_800,
    "base_patch16_384": 86_859_496,
}

RESNET = {  # C4: ImageNet, and a 3×3 stem with ten classes
    18: (11_689_512, 11_173_962),
    34: (21_797_672, 21_282_122),
    50: (25_557_032, 23_520_842),
    101: (44_549_160, 42_512_970),
    152: (60_192_808, 58_156_618),
}

EFFICIENTNET = {  # T1
    "b0": 5_288_548,
    "b1": 7_794_184,
    "b2": 9_109_994,
    "b3": 12_233_232,
    "b4": 19_341_616,
    "b5": 30_389_784,
    "b6": 43_040_704,
    "b7": 66_347_960,
    "lite0": 4_652_008,
    "lite1": 5_416_680,
    "lite2": 6_092_072,
    "lite3": 8_197_096,
    "lite4": 13_006_568,
}

DEIT = {"tiny": 5_910_800, "base": 87_338_192}  # T5

LARGE = {  # T2, T3, T4
    "dm_nfnet_f0": 71_489_284,
    "dm_nfnet_f1": 132_634_256,
    "dm_nfnet_f4": 316_069_172,
    "resnetv2_50x1_bit": 25_549_352,
    "resnetv2_152x2_bit": 236_335_208,
    "resnetv2_101x3_bit": 387_934_888,
    "resnetv2_152x4_bit": 936_533_224,
    "halonet26t": 12_480_288,
    "halonet50ts": 22_733_280,
}

CIFAR_RESNET = {20: 269_722, 32: 464_154, 44: 658_586, 56: 853_018, 110: 1_727_962}

BERT = {  # A4: encoder with pooler, with both pre-training heads (tied), with two classes
    "tiny": (4_385_920, 4_433_468, 4_386_178),
    "mini": (11_170_560, 11_267_900, 11_171_074),
    "small": (28_763_648, 29_058_876, 28_764_674),
    "medium": (41_373_184, 41_668_412, 41_374_210),
    "base": (109_482_240, 110_106_428, 109_483_778),
    "large": (335_141_888, 336_226_108, 335_143_938),
}

TEXT_GMLP = {  # M4: Toeplitz W, and full W
    18: (58_997_486, 59_287_808),
    36: (101_609_948, 102_190_592),
    72: (186_834_872, 187_996_160),
    144: (357_284_720, 359_607_296),
}


@pytest.mark.parametrize("size", MIXER)
def test_mixer(size: str) -> None:
    """M1, E1."""
    total, without_head = MIXER[size]
    assert count(on_meta(f"mixer_{size}_224")) == total
    assert count(on_meta(f"mixer_{size}_224", num_classes=0)) == without_head


@pytest.mark.parametrize(("depth", "expected"), {4: 2_254_346, 6: 3_373_706, 8: 4_493_066, 12: 6_731_786}.items())
def test_small_image_mixer(depth: int, expected: int) -> None:
    """M1: P=4, C=256, D_C=1024, D_S=256 at 32 pixels; the shape that the course work states."""
    assert count(on_meta("mixer_small_p4_32", depth=depth)) == expected


def test_mixer_nano() -> None:
    """M1: the public small network."""
    assert count(on_meta("mixer_nano_p4_32")) == 1_132_170


@pytest.mark.parametrize("size", GMLP)
def test_gmlp_and_its_kin(size: str) -> None:
    """M2, M3, M5, M6, E1."""
    names = [f"{kind}_{size}_224" for kind in ("gmlp", "tmlp", "tmlp2d", "amlp")]
    found = [count(on_meta(name)) for name in names]
    found.append(count(on_meta(names[0], gate="multiplicative")))
    assert tuple(found) == GMLP[size]


@pytest.mark.parametrize(
    ("name", "expected"),
    {"nano": 1_850_250, "ti": 4_613_898, "mini": 4_105_930, "small": 4_817_930}.items(),
)
def test_small_image_gmlp(name: str, expected: int) -> None:
    """M2 at 32 pixels: C128 E768 L12 and L30, C192 E768 L18, C256 E1024 L12."""
    assert count(on_meta(f"gmlp_{name}_p4_32")) == expected


@pytest.mark.parametrize("depth", TEXT_GMLP)
def test_text_gmlp(depth: int) -> None:
    """M4: 32,000 words, tied, no positions, final norm; the counts of table 7 need the Toeplitz W."""
    toeplitz, full = TEXT_GMLP[depth]
    assert count(on_meta(f"gmlp_text_l{depth}", num_classes=0)) == toeplitz
    assert count(on_meta(f"gmlp_text_l{depth}", num_classes=0, gate_weight="dense")) == full


def test_text_gmlp_without_split_and_the_base_sizes() -> None:
    """M4, M6: table 6's 92 M rows have an expanded width of 2048; gMLP-base and aMLP-base."""
    unsplit = on_meta("gmlp_text_l36", num_classes=0, hidden_dim=2048, gate="multiplicative")
    assert count(unsplit) == 92_172_764
    assert count(on_meta("gmlp_text_base", num_classes=0)) == 130_073_552
    assert count(on_meta("amlp_text_base", num_classes=0)) == 108_791_516


@pytest.mark.parametrize("name", VIT)
def test_vit(name: str) -> None:
    """A3: class token, learned positions, 1000 classes."""
    assert count(on_meta(f"vit_{name}")) == VIT[name]


@pytest.mark.parametrize("size", DEIT)
def test_distilled_deit(size: str) -> None:
    """T5: a token, its position and a head more than the plain one, which is ViT."""
    assert count(on_meta(f"deit_{size}_distilled_patch16_224")) == DEIT[size]
    assert count(on_meta(f"deit_{size}_patch16_224")) == VIT[f"{size}_patch16_224"]


@pytest.mark.parametrize("depth", RESNET)
def test_resnet(depth: int) -> None:
    """C4."""
    assert (count(on_meta(f"resnet{depth}")), count(on_meta(f"resnet{depth}_cifar"))) == RESNET[depth]


@pytest.mark.parametrize("depth", CIFAR_RESNET)
def test_cifar_resnet(depth: int) -> None:
    """C4: identity shortcuts, zero-padded."""
    assert count(on_meta(f"resnet{depth}_cifar")) == CIFAR_RESNET[depth]


@pytest.mark.parametrize("size", EFFICIENTNET)
def test_efficientnet(size: str) -> None:
    """T1: compound scaling, rounded as published."""
    assert count(on_meta(f"efficientnet_{size}")) == count(on_meta(f"tf_efficientnet_{size}")) == EFFICIENTNET[size]


@pytest.mark.parametrize("name", LARGE)
def test_nfnet_bit_and_halonet(name: str) -> None:
    """T2, T3, T4."""
    assert count(on_meta(name)) == LARGE[name]


@pytest.mark.parametrize("size", BERT)
def test_bert(size: str) -> None:
    """A4: V = 30,522."""
    bare = on_meta(f"bert_{size}", num_classes=0)
    with torch.device("meta"):
        pretraining = torch.nn.ModuleList([bare, PretrainingHeads(bare)])  # type: ignore[arg-type]
    assert (count(bare), count(pretraining), count(on_meta(f"bert_{size}", num_classes=2))) == BERT[size]


@pytest.mark.parametrize(
    ("depth", "expected"), {6: 66_955_008, 12: 109_482_240, 24: 194_536_704, 48: 364_645_632}.items()
)
def test_bert_of_table_seven(depth: int, expected: int) -> None:
    """A4: width 768 at the depths of table 7."""
    assert count(on_meta("bert_base", depth=depth, num_classes=0)) == expected


def test_the_classic_nets() -> None:
    """C4, C8: LeNet-5 on one and three channels, the slide's net, RCNN without norm and bias."""
    assert count(on_meta("lenet5")) == 61_706
    assert count(on_meta("lenet5", in_chans=3)) == 62_006
    assert count(on_meta("lenet_slide")) == 81_194
    widths = {96: 671_722, 128: 1_190_538, 160: 1_856_810}
    assert {width: count(on_meta(f"rcnn_{width}", norm=False)) for width in widths} == widths


@pytest.mark.parametrize("width", [96, 128, 160])
def test_a_recurrent_convnet_has_a_norm_for_every_step(width: int) -> None:
    """C8: normalised, it has two values a channel more for the stem and for each of 4 × (3 + 1) unrolled steps."""
    name = f"rcnn_{width}"
    assert count(on_meta(name)) - count(on_meta(name, norm=False)) == 2 * width * (1 + 4 * 4)


@cache
def block_count(name: str, changes: tuple[tuple[str, Any], ...] = ()) -> int:
    """What one more block adds: every block is registered and of one size."""
    shallow, deep = (on_meta(name, depth=depth, **dict(changes)) for depth in (2, 3))
    return count(deep) - count(shallow)


def test_mixer_block_formula() -> None:
    """M1: 4C + (2·S·D_S + D_S + S) + (2·C·D_C + D_C + C); with S ≠ D_S and C ≠ D_C, so widths cannot be swapped."""
    S, C, T, D = 64, 128, 96, 512
    expected = 4 * C + (2 * S * T + T + S) + (2 * C * D + D + C)
    assert block_count("mixer_nano_p4_32", (("token_dim", T),)) == expected


def test_gmlp_block_formulas() -> None:
    """M2, M5, M6: 2C + (C·E+E) + E + (S²+S) + (E/2·C+C), with S² → 2S−1 or 15², and (C·3a+3a)+(a·E/2+E/2) more."""
    S, C, E, a = 64, 128, 768, 64
    around = 2 * C + (C * E + E) + E + S + (E // 2 * C + C)
    assert block_count("gmlp_nano_p4_32") == around + S**2
    assert block_count("tmlp_nano_p4_32") == around + 2 * S - 1
    assert block_count("tmlp2d_nano_p4_32") == around + 15 * 15
    assert block_count("amlp_nano_p4_32") == around + S**2 + (C * 3 * a + 3 * a) + (a * E // 2 + E // 2)
    assert block_count("amlp_nano_p4_32", (("tiny_attention", 128),)) == (
        around + S**2 + (C * 3 * 128 + 3 * 128) + (128 * E // 2 + E // 2)
    )


def test_vit_and_bert_block_formula() -> None:
    """A3, A4: 4C + (3C²+3C) + (C²+C) + (2·C·D+D+C)."""
    for name, C, D in (("vit_nano_p4_32", 192, 384), ("bert_tiny", 128, 512)):
        assert block_count(name) == 4 * C + (3 * C**2 + 3 * C) + (C**2 + C) + (2 * C * D + D + C)
