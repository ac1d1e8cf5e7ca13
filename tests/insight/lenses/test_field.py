"""C7: theoretical fields of VGG-like stacks by closed form, and measured ones, which must lie inside them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import weft
from weft.data.batch.loader import Batch
from weft.errors import WeftError
from weft.insight import look, open_subject
from weft.insight.lenses.field.charts import CROSS, drawn
from weft.insight.lenses.field.effective import MeasuredField, by_offset, central, measure
from weft.insight.lenses.field.lens import placed
from weft.insight.lenses.field.theoretical import Place, places
from weft.networks.measure.receptive_field import Layer, grow, receptive_field
from weft.networks.registry import configured


def noise(network: object, examples: int = 4, side: int = 32, channels: int = 3) -> list[Batch]:
    x = torch.randn(examples, channels, side, side, generator=torch.Generator().manual_seed(0))
    return [Batch({"x": x}, torch.zeros(examples), torch.arange(examples), examples)]


@pytest.mark.parametrize("count", [1, 2, 5, 13])
def test_c7_a_vgg_like_stack_of_3x3_sees_2n_plus_1(count: int) -> None:
    assert grow(Layer(str(number), 3) for number in range(count))[-1].side == 2 * count + 1


def test_c7_vgg16_sees_212_pixels() -> None:
    """Thirteen 3×3 convolutions in stages of 2, 2, 3, 3, 3, a 2×2 pooling after each: 212, as is widely published."""
    layers = [layer for n in (2, 2, 3, 3, 3) for layer in [*(Layer("conv", 3) for _ in range(n)), Layer("pool", 2, 2)]]
    assert (grow(layers)[-1].side, grow(layers)[-1].stride) == (212, 32)
    assert grow(layers[:-1])[-1].side == 196


def test_c7_the_measured_field_of_ones_is_the_convolution_of_boxes() -> None:
    """Two linear 3×3 layers of ones: the gradient is 1 2 3 2 1 in each direction, the energy its square."""
    net = weft.create_model("filternet", hidden=(1,), act="identity", img_size=9).eval()
    with torch.no_grad():
        for convolution in (net.hidden[0], net.head):
            convolution.weight.fill_(1)
    one = measure(net, places(net.config)[-1:], noise(net, 2, 9, 1))[0]
    triangle = np.zeros(9)
    triangle[2:7] = [1, 2, 3, 2, 1]
    np.testing.assert_allclose(one.energy, 2 * np.outer(triangle, triangle) ** 2, rtol=1e-5)
    assert one.place.side == 5 and one.inside() == 1.0


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("lenet5", {"in_chans": 3}),
        ("lenet5_local", {"in_chans": 3}),
        ("resnet8_cifar", {}),
        ("resnet18", {"img_size": (32, 32), "widths": (8, 8, 8, 8)}),
        ("rcnn_96", {"width": 8, "steps": 1}),
        ("filternet", {"hidden": (4, 4), "kernel": 5, "in_chans": 3, "img_size": (32, 32)}),
        ("control_depthwise_pico_p4_32", {"depth": 1}),
        ("control_pooling_pico_p4_32", {"depth": 2}),
        ("control_identity_pico_p4_32", {"depth": 2}),
        ("vit_nano_resnet20_32", {"depth": 1}),
    ],
)
def test_c7_no_energy_lies_outside_the_theoretical_field(name: str, changes: dict[str, object]) -> None:
    config = configured(name, **changes)
    torch.manual_seed(0)
    net = weft.create_model(name, **changes).eval()
    known = places(config)
    assert known[-1].side == receptive_field(config)[-1].side
    for one in measure(net, known, noise(net)):
        assert float(one.energy.sum()) > 0, one.place
        assert one.inside() == 1.0, one.place


def test_c7_a_theoretical_field_that_were_too_small_would_be_noticed() -> None:
    net = weft.create_model("lenet5", in_chans=3).eval()
    place = places(net.config)[-1]
    assert place.side is not None
    for wrong in (Place(place.module, place.side - 2, place.stride, place.start),
                  Place(place.module, place.side, place.stride, place.start + 1)):  # fmt: skip
        assert measure(net, [wrong], noise(net))[0].inside() < 1


def test_effective_sides_of_known_fields() -> None:
    point, even = np.zeros((9, 9)), np.ones((9, 9))
    point[4, 4] = 1
    assert MeasuredField(Place("x", 9, 1, 0.0), point, (4.0, 4.0)).effective_side() == 1
    assert MeasuredField(Place("x", 9, 1, 0.0), even, (4.0, 4.0)).effective_side() == 9  # 7×7 would hold 60 %
    assert MeasuredField(Place("x", 9, 1, 0.0), even, (4.0, 4.0)).effective_side(0.6) == 7
    assert MeasuredField(Place("x", 5, 1, 0.0), even, (4.0, 4.0)).inside() == pytest.approx(25 / 81)


def test_energies_of_texts_are_summed_by_distance_from_their_middle() -> None:
    energy = torch.tensor([[1.0, 2.0, 3.0, 0.0], [0.0, 5.0, 0.0, 0.0]])
    assert by_offset(energy, torch.tensor([1, 1]), 4).tolist() == [0, 0, 1, 7, 3, 0, 0]


def test_windows_of_a_convolution_over_words_hold_their_field() -> None:
    subject = open_subject("conv_text", "pydocs", settings={"vocab_size": 400, "dim": 16, "channels": 4})
    finding = look(subject, "field", examples=8)
    assert [row[1] for row in finding.table.rows] == [3, 4, 5]
    assert all(row[4] == 1.0 for row in finding.table.rows)


@pytest.mark.parametrize("name", ["lstm_text", "bert_tiny", "gmlp_text_tiny"])
def test_text_networks_of_every_kind_have_a_measured_field(name: str) -> None:
    sizes = {"vocab_size": 400, "dim": 16, "max_length": 32}
    more = {"lstm_text": {"hidden_dim": 8}, "bert_tiny": {"hidden_dim": 32, "heads": 2}}.get(name, {"hidden_dim": 32})
    finding = look(open_subject(name, "pydocs", settings={**sizes, **more}), "field", examples=8)
    assert finding.table.rows[0][1] == 1 and finding.table.rows[-1][1] == "everything"


def test_units_without_a_place_have_no_field() -> None:
    with pytest.raises(WeftError, match="no place in the input"):
        look(open_subject("mlp", "digits"), "field")


def test_the_field_that_is_shown_lies_nearest_to_the_middle_and_says_where_it_is() -> None:
    """Strides of 32 with padding over 96 pixels: fields have their middles at 0, 32 and 64, none at 47.5."""
    assert central(Place("x", 9, 32, 0.0), 3, 96) == 1
    assert central(Place("x", 9, 4, 1.5), 8, 32) in (3, 4)
    assert central(Place("x", 9, 8, 0.0), 4, 32) == 2
    third = MeasuredField(Place("x", 9, 32, 0.0), np.ones((96, 96)), (32.0, 32.0))
    assert placed(third) == "34 % down, 34 % across"
    pixels = drawn(third)
    assert pixels[65, 65].tolist() == list(CROSS) and pixels[:, :2].max() < 255
