"""C2: hand-made filters against what they must do; learned filters, principal components, feature maps of a layer."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import weft
from weft.errors import WeftError
from weft.insight import look, open_subject
from weft.insight.layers import find_layer, layer_names
from weft.insight.lenses.filters.classic_filters import HANDMADE, filtered, kernel, most_like
from weft.insight.lenses.filters.feature_maps import by_word, maps_of
from weft.insight.lenses.filters.first_layer import FirstLayer, first_layer
from weft.insight.lenses.filters.lens import read_picture
from weft.nn.blocks import Layout


def test_c2_edge_detectors_see_nothing_on_a_flat_picture_and_the_others_leave_it() -> None:
    flat = np.full((6, 7, 3), 100, dtype=np.uint8)
    for name in HANDMADE:
        wanted = 0.0 if name.startswith("edges") else 100.0
        np.testing.assert_allclose(filtered(flat, name), wanted, atol=1e-10)


@pytest.mark.parametrize("name", list(HANDMADE))
def test_c2_a_single_bright_pixel_shows_the_kernel_turned_round(name: str) -> None:
    """(I∗K)(i, j) = Σ I(i+m, j+n) K(m, n): a correlation, so that an impulse gives the kernel rotated by 180°."""
    image = np.zeros((5, 5, 3), dtype=np.uint8)
    image[2, 2] = 200
    answer = filtered(image, name)[1:4, 1:4, 0] / 200
    np.testing.assert_allclose(answer, kernel(name).numpy()[::-1, ::-1], atol=1e-12)


def test_c2_a_network_that_has_learned_to_sharpen_is_told_so() -> None:
    net = weft.create_model("filternet")
    with torch.no_grad():
        net.head.weight[0, 0] = -2 * kernel("sharpen")
    found = first_layer(net)
    assert found is not None and found.name == "head"
    assert most_like(found.filters[0, 0].double().numpy()) == ("sharpen", pytest.approx(-1.0))


def test_filters_that_are_multiples_of_one_have_one_component() -> None:
    one = torch.randn(1, 3, 4, 4)
    components, energies = FirstLayer(
        "x", "patch embedding", torch.arange(1.0, 6)[:, None, None, None] * one
    ).components()
    assert float(energies[0]) == pytest.approx(1.0)
    torch.testing.assert_close(components[0].abs(), (one[0] / one[0].norm()).abs().double())


def test_tokens_go_back_to_their_grid_without_the_class_token() -> None:
    tokens = torch.arange(7.0)[None, :, None].expand(1, 7, 2)
    maps = maps_of(tokens, Layout((2, 3), extra=1))
    assert maps.shape == (2, 2, 3)
    assert maps[0].tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("name", ["vit_pico_p4_32", "resnet8_cifar", "mlp", "lenet5_local", "rcnn_96"])
def test_every_image_family_shows_its_filters_and_any_layer(name: str) -> None:
    changes = {"depth": 1} if "pico" in name else {"width": 8} if "rcnn" in name else {}
    subject = open_subject(name, "digits", settings=changes)
    layers = layer_names(subject.network)
    finding = look(subject, "filters", layer=layers[-1])
    assert {"handmade", "learned", "components", "maps"} <= finding.pictures.keys()
    assert finding.record["maps"]["layer"] == layers[-1]


def test_a_text_network_shows_values_by_word() -> None:
    subject = open_subject("conv_text", "pydocs", settings={"vocab_size": 400, "dim": 16, "channels": 4})
    finding = look(subject, "filters")
    assert list(finding.pictures) == ["maps"]
    assert "[CLS]" in finding.pictures["maps"].content


def test_a_recurrent_layer_shows_values_by_word_and_has_gradients() -> None:
    sizes = {"vocab_size": 400, "dim": 8, "hidden_dim": 4, "max_length": 32}
    subject = open_subject("lstm_text", "pydocs", settings=sizes)
    assert look(subject, "filters").record["maps"]["layer"] == "lstm"
    layers = [row[0] for row in look(subject, "backprop", examples=4, depth=2).table.rows]
    assert layers == ["embed", "lstm", "head"]
    assert "inside" in look(subject, "activations", examples=4).sentence


def test_a_layer_that_is_not_there_names_the_nearest() -> None:
    with pytest.raises(WeftError, match=r"no layer 'block.0'; did you mean .*blocks.0"):
        find_layer(weft.create_model("vit_pico_p4_32"), "block.0")


def test_layers_that_only_drop_are_not_offered() -> None:
    assert not any("drop" in name for name in layer_names(weft.create_model("vit_pico_p4_32")))


def test_a_picture_of_another_size_is_fitted_and_a_bad_one_is_refused(tmp_path: Path) -> None:
    Image.new("RGB", (700, 300), (200, 10, 10)).save(tmp_path / "wide.png")
    assert read_picture(tmp_path / "wide.png").shape[:2] == (103, 240)
    subject = open_subject("lenet_slide", "digits")
    finding = look(subject, "filters", picture=tmp_path / "wide.png")
    assert finding.record["maps"]["shape"] == [6, 30, 30]
    (tmp_path / "bad.png").write_text("no picture")
    for path in (tmp_path / "bad.png", tmp_path / "none.png"):
        with pytest.raises(WeftError, match="picture"):
            read_picture(path)


def test_a_long_text_is_folded_and_its_map_has_a_key() -> None:
    words = [f"word{number}" for number in range(128)]
    drawn = by_word(torch.randn(1, 128, 64, generator=torch.Generator().manual_seed(0)), words, "What it computes")
    height = int(re.findall(r'viewBox="0 0 \d+ (\d+)"', str(drawn.content))[0])
    assert height < 450 and "word95" in drawn.content and "the first 96 of 128 words" in drawn.caption
    assert str(drawn.content).count("<image") == 5  # four columns of words and the key
