"""Bad input is met with one sentence that says what is wrong and what to do."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from networks.small import IMAGES, LENGTH, SIDE, TEXTS, small
from weft.errors import WeftError
from weft.networks.registry import config_from_dict, create_model

ANY_SIDE = ("resnet", "rcnn", "efficientnet", "nfnet", "bit")


def test_an_unknown_name_gets_the_nearest_ones() -> None:
    with pytest.raises(WeftError, match=r"no model 'mixer_b16'; did you mean .*mixer_b16_224.*weft models"):
        create_model("mixer_b16")
    with pytest.raises(WeftError, match="resnet18"):
        create_model("resnet_18")
    with pytest.raises(WeftError, match="mean mixer_b16_224"):
        create_model("MIXER_B16_224")


def test_an_unknown_setting_gets_the_nearest_ones() -> None:
    with pytest.raises(WeftError, match=r"no setting 'hiden_dim'; did you mean .*hidden_dim"):
        create_model("mixer_nano_p4_32", hiden_dim=3)
    with pytest.raises(WeftError, match="no setting 'img_size'"):
        create_model("bert_tiny", img_size=32)


def test_an_unknown_family_gets_the_list() -> None:
    with pytest.raises(WeftError, match=r"no family 'transformer' of networks; the families are .*vit"):
        config_from_dict({"family": "transformer"})
    with pytest.raises(WeftError, match="no family None"):
        config_from_dict({})


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        ("mixer_b16_224", {"img_size": 100}, "image side 100 is not a multiple of the patch side 16; use 96 or 112"),
        ("vit_nano_p4_32", {"img_size": (32, 30)}, "image side 30 is not a multiple of the patch side 4; use 28 or 32"),
        ("gmlp_nano_p4_32", {"img_size": 3}, "image side 3 is not a multiple of the patch side 4; use 4,"),
        ("mixer_nano_p4_32", {"patch_size": 5}, "image side 32 is not a multiple of the patch side 5; use 30 or 35"),
        ("vit_small_resnet18_224", {"img_size": 200}, "image side 200 is not a multiple of .* 16; use 192 or 208"),
        ("vit_nano_resnet20_32", {"stem_layers": ()}, "hybrid needs stem_layers"),
        ("lenet5", {"img_size": 8}, "too small for 2 convolutions of 5×5 with pooling; use a side of at least 16"),
        ("rcnn_96", {"img_size": 2}, "use a side of at least 4"),
        ("vit_nano_p4_32", {"heads": 5}, "192 channels cannot be shared by 5 heads; use a divisor of 192"),
        ("gmlp_nano_p4_32", {"hidden_dim": 33}, "split gate halves the expanded width; 33 is odd"),
        ("vit_nano_p4_32", {"dim": 33, "heads": 3, "positions": "sinusoidal"}, "even number of channels; 33 is odd"),
        ("mixer_nano_p4_32", {"pool": "token"}, "pool='token' needs class_token=True"),
        ("control_pooling_p4_32", {"class_token": True}, "shows the class token nothing; use class_token=False"),
        ("tmlp2d_nano_p4_32", {"class_token": True}, "no place for a class token; use class_token=False"),
        ("tmlp_text_tiny", {"gate_weight": "toeplitz2d"}, "text has no second dimension; use gate_weight='toeplitz'"),
        ("filternet", {"kernel": 4}, "kernel side must be odd .* 4 is not"),
        ("resnet18", {"layers": (2, 2)}, "2 stages but 4 widths; give one width a stage"),
        (
            "efficientnet_b0",
            {"img_size": 16},
            "16 is below the 32 pixels .* a side of at least 32, or .*nano",
        ),
        ("dm_nfnet_f0", {"img_size": (64, 31)}, "image side 31 is below the 32 pixels"),
        ("resnetv2_50x1_bit", {"img_size": 8}, "image side 8 is below the 32 pixels .* such as bit_nano_32"),
        ("efficientnet_b0", {"layers": (1, 2)}, "2 layers, 7 widths, .* give one of each for every stage"),
        ("efficientnet_b0", {"kernels": (3, 3, 4, 3, 5, 5, 3)}, "kernels must have odd sides; 4 is even"),
        ("halonet26t", {"img_size": 224}, "image side 224 is not a multiple of 256, .* use 256, or another block"),
        ("halonet26t", {"img_size": 16}, "image side 16 is below the 32 pixels"),
        ("halonet26t", {"heads": (8, 8, 7, 8)}, "256 channels cannot be shared by 7 heads; use a divisor of 256"),
        ("halonet26t", {"block": 3}, "needs blocks of an even side; 3 is odd"),
        ("vit_nano_p4_32", {"mixer": "halo", "heads": 5}, "192 channels cannot be shared by 5 heads"),
        ("vit_nano_p4_32", {"mixer": "halo"}, "'halo' shows the class token nothing; use class_token=False"),
        ("bert_tiny", {"mixer": "halo"}, "'halo' takes no mask, so padding would change what a text means"),
        ("deit_pico_distilled_p4_32", {"pool": "mean"}, "read at its two tokens; use class_token=True, pool='token'"),
        ("mlp", {"img_size": None}, None),
    ],
)
def test_shapes_that_do_not_fit_say_which_do(name: str, changes: dict[str, Any], sentence: str | None) -> None:
    """C4, C8, A3, A5, M1–M3, M5: what is wrong, and what to use instead."""
    if sentence is None:  # no side at all keeps the named one
        assert create_model(name, **changes).config.img_size == (32, 32)
        return
    with pytest.raises(WeftError, match=sentence):
        create_model(name, **changes)


@pytest.mark.parametrize(
    ("name", "changes", "setting"),
    [
        ("mixer_nano_p4_32", {"depth": 0}, "depth"),
        ("mixer_nano_p4_32", {"token_dim": 0}, "token_dim"),
        ("mixer_nano_p4_32", {"num_classes": -1}, "num_classes"),
        ("mixer_nano_p4_32", {"in_chans": 0}, "in_chans"),
        ("mixer_nano_p4_32", {"drop_rate": 1.0}, "drop_rate"),
        ("mixer_nano_p4_32", {"drop_path_rate": -0.1}, "drop_path_rate"),
        ("mixer_nano_p4_32", {"act": "swish"}, "act"),
        ("gmlp_nano_p4_32", {"gate": "concat"}, "gate"),
        ("bert_tiny", {"max_length": "long"}, "max_length"),
        ("mixer_nano_p4_32", {"norm_eps": 0}, "norm_eps"),
        ("lenet5", {"channels": ()}, "channels"),
        ("resnet18", {"layers": (), "widths": ()}, "layers"),
        ("conv_text", {"kernels": ()}, "kernels"),
        ("filternet", {"num_classes": 3}, "num_classes"),
        ("efficientnet_b0", {"strides": (1, 2, 3, 2, 1, 2, 1)}, "strides"),
        ("halonet26t", {"stages": ("cc", "cx", "ca", "aa")}, "stages"),
    ],
)
def test_a_value_that_does_not_do_is_named(name: str, changes: dict[str, Any], setting: str) -> None:
    with pytest.raises(WeftError, match=f"{name}: {setting} = .* does not do"):
        create_model(name, **changes)


@pytest.mark.parametrize("side", [0, -4, (32, 0), (1, 2, 3), "32", 32.5])
@pytest.mark.parametrize("name", ["mlp", "resnet18", "filternet", "vit_nano_p4_32"])
def test_a_side_that_is_none_is_refused(name: str, side: Any) -> None:
    with pytest.raises(WeftError, match="img_size is a side in pixels, or height and width, not"):
        create_model(name, img_size=side)


def test_pretrained_must_say_which() -> None:
    with pytest.raises(WeftError, match=r"no package brings .* efficientnet_lite0.* a file, a folder or a name on"):
        create_model("mixer_nano_p4_32", pretrained=True)


def test_an_mlp_needs_to_know_its_inputs() -> None:
    """F1."""
    with pytest.raises(WeftError, match="not both"):
        create_model("mlp", in_features=4, img_size=8)
    with pytest.raises(WeftError, match="needs `in_features` for vectors or `img_size` for images"):
        config_from_dict({"family": "mlp"})
    with pytest.raises(WeftError, match="takes vectors of 4 values, got"):
        create_model("mlp", in_features=4)(torch.zeros(2, 5))


@pytest.mark.parametrize("name", IMAGES)
def test_wrong_channels_and_axes(name: str) -> None:
    network = small(name)
    chans = network.config.in_chans
    with pytest.raises(WeftError, match=f"takes {chans} channels, the images have 5; .* in_chans=5"):
        network(torch.zeros(2, 5, SIDE, SIDE))
    with pytest.raises(WeftError, match="batch, channels, height, width"):
        network(torch.zeros(chans, SIDE, SIDE))
    with pytest.raises(WeftError, match=r"images are torch.uint8; make them float"):
        network(torch.zeros(2, chans, SIDE, SIDE, dtype=torch.uint8))


@pytest.mark.parametrize("name", [name for name in IMAGES if not name.startswith(ANY_SIDE)])
def test_an_image_of_another_size(name: str) -> None:
    """Networks whose weights or blocks know the size refuse another; ConvNets with a pooled head take any."""
    network = small(name)
    with pytest.raises(WeftError, match=r"takes images of 16×16, these are 20×16; .*img_size=\(20, 16\)"):
        network(torch.zeros(2, network.config.in_chans, 20, SIDE))


@pytest.mark.parametrize("name", [name for name in IMAGES if name.startswith(ANY_SIDE)])
def test_convolutional_networks_take_any_side(name: str) -> None:
    """C4, C8, T1–T3."""
    assert small(name).eval()(torch.zeros(2, 3, 20, 12)).shape == (2, 3)


@pytest.mark.parametrize("name", TEXTS)
def test_texts_that_no_network_can_read(name: str) -> None:
    """M4, A4, A6: too long, all padding, not a batch, a mask of another kind or shape."""
    network = small(name)
    ids, mask = torch.zeros(3, LENGTH, dtype=torch.long), torch.ones(3, LENGTH, dtype=torch.bool)
    with pytest.raises(WeftError, match=f"{LENGTH + 1} tokens is longer than the network's {LENGTH}; truncate"):
        network(torch.zeros(1, LENGTH + 1, dtype=torch.long))
    with pytest.raises(WeftError, match="word ids of shape \\(batch, tokens\\)"):
        network(ids[0])
    with pytest.raises(WeftError, match=r"word ids of shape .*\(3, 0\)"):
        network(ids[:, :0])
    with pytest.raises(WeftError, match=r"whole word ids .*float32"):
        network(ids.float())
    with pytest.raises(WeftError, match=r"mask must be bool.*int64"):
        network(ids, mask=mask.long())
    with pytest.raises(WeftError, match=r"mask must be .*\(3, 10\) as the ids are.*\(3, 4\)"):
        network(ids, mask=mask[:, :4])
    mask[1] = False
    with pytest.raises(WeftError, match="row 1 of the batch is all padding"):
        network(ids, mask=mask)


def test_a_head_that_cannot_be() -> None:
    with pytest.raises(WeftError, match="cannot have -1 classes; use 0 for none"):
        small("mlp").reset_classifier(-1)
    with pytest.raises(WeftError, match="no classes"):
        create_model("filternet").reset_classifier(3)


def test_messages_are_single_lines() -> None:
    for name, changes in (("nothing", {}), ("mixer_b16_224", {"img_size": 100}), ("bert_tiny", {"depth": "x"})):
        with pytest.raises(WeftError) as caught:
            create_model(name, **changes)  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)


def test_ids_of_another_vocabulary_are_refused() -> None:
    network = small("bert_tiny")
    ids = torch.full((1, 4), network.config.vocab_size)
    with pytest.raises(WeftError, match="tokenizer"):
        network(ids)
    with pytest.raises(WeftError, match="tokenizer"):
        network(ids * 0 - 1)


def test_segments_of_another_number_or_shape_are_refused() -> None:
    """A4."""
    network, ids = small("bert_tiny"), torch.zeros(2, 4, dtype=torch.long)
    with pytest.raises(WeftError, match="segments from 2 to 2 do not fit a network of 2"):
        network(ids, segments=ids + 2)
    with pytest.raises(WeftError, match=r"segments must be \(2, 4\) as the ids are; these are \(2, 3\)"):
        network(ids, segments=ids[:, :3])


def test_widths_that_crash_the_convolution_library_are_refused() -> None:
    with pytest.raises(WeftError, match="at least 8"):
        create_model("resnet18", widths=(4, 8, 16, 32))
    with pytest.raises(WeftError, match="at least 8"):
        create_model("vit_nano_resnet20_32", stem_widths=(4, 8, 16))
