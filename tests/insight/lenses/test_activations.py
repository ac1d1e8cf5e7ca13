"""F2: the functions drawn, and dead or saturated units counted, against networks in which their number is known."""

from __future__ import annotations

import pytest
import torch

from weft.insight import look, open_subject
from weft.insight.lenses.activations.dead_units import Units, by_unit, watch_units
from weft.insight.lenses.activations.lens import values_of
from weft.insight.subject import Subject
from weft.nn.activations import ACTIVATIONS


@pytest.fixture(scope="module")
def digits_mlp() -> Subject:
    settings = {"hidden": [8, 8], "img_size": 8, "in_chans": 1}
    return open_subject("mlp", "digits", settings=settings)


def test_f2_values_and_slopes_at_zero_are_the_known_ones() -> None:
    assert values_of("logistic")["g′(0)"] == values_of("logistic")["largest slope"] == 0.25
    assert values_of("tanh")["g′(0)"] == 1 and values_of("softplus")["g′(0)"] == 0.5
    assert values_of("gelu")["g(0)"] == 0 and values_of("step")["largest slope"] == 0


def test_f2_units_pushed_far_below_zero_are_dead(digits_mlp: Subject) -> None:
    with torch.no_grad():
        digits_mlp.network.layers[0].bias[:3] = -1e6
        digits_mlp.network.layers[0].bias[3:] = 1e6
    found = watch_units(digits_mlp, 64)
    assert found["layers.1"].dead == 3 / 8 and found["layers.1"].saturated == 0
    assert found["layers.1"].flatness == 3 / 8


def test_f2_a_unit_that_is_flat_on_most_inputs_is_saturated_not_dead() -> None:
    units = Units("tanh")
    z = torch.zeros(100, 2)
    z[:96, 0] = 9.0
    units.add(z[:50], ACTIVATIONS["tanh"].derivative)
    units.add(z[50:], ACTIVATIONS["tanh"].derivative)
    assert (units.dead, units.saturated) == (0.0, 0.5)
    assert units.flatness == pytest.approx(0.48)


def test_padding_is_not_counted() -> None:
    z, mask = torch.arange(12.0).view(1, 4, 3), torch.tensor([[True, True, False, False]])
    assert torch.equal(by_unit(z, -1, mask), z[0, :2])


@pytest.mark.parametrize(
    ("name", "units"),
    [("resnet8_cifar", 7), ("mixer_pico_p4_32", 2), ("gmlp_pico_p4_32", 1), ("rcnn_96", 5), ("lenet_slide", 4)],
)
def test_the_activations_of_every_family_are_seen(name: str, units: int) -> None:
    changes = {"depth": 1} if "pico" in name else {"width": 8} if "rcnn" in name else {}
    subject = open_subject(name, "digits", settings={"img_size": 32 if "lenet" in name else 16, **changes})
    found = watch_units(subject, 4)
    assert len(found) == units
    assert all(layer.seen > 0 and len(layer.flat) > 1 for layer in found.values())


def test_without_data_the_functions_are_the_table() -> None:
    finding = look(open_subject("lenet_slide"), "activations")
    assert [row[0] for row in finding.table.rows] == list(ACTIVATIONS)
    assert finding.pictures["functions"].content.count("<polyline") == 2 * len(ACTIVATIONS)
