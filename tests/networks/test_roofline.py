"""Predictions for machines that are not here: counts against torch's own, and bounds that follow from the roofs."""

from __future__ import annotations

import json

import pytest
from torch.utils.flop_counter import FlopCounterMode

from weft.commands.main import dispatch
from weft.errors import WeftError
from weft.networks.measure.roofline import Device, Work, forward_operations, on_meta, predicted, step_operations
from weft.networks.registry import configured

ENDLESS = 1e30


@pytest.mark.parametrize(
    "name", ["mixer_nano_p4_32", "vit_pico_p4_32", "gmlp_pico_p4_32", "resnet20_cifar", "bert_tiny"]
)
def test_products_are_those_that_torch_counts(name: str) -> None:
    config = configured(name)
    network, inputs = on_meta(config, 2)
    with FlopCounterMode(display=False) as counter:
        network.eval()(inputs)
    assert sum(work.flops for work in forward_operations(config, 2)) == counter.get_total_flops()


def test_a_step_takes_about_three_times_the_products_of_a_forward_pass() -> None:
    config = configured("mixer_nano_p4_32")
    forward, step = (sum(work.flops for work in found(config, 4)) for found in (forward_operations, step_operations))
    assert 2.9 < step / forward <= 3.01


def test_each_roof_bounds_the_time() -> None:
    work = [Work(flops=1000, numbers=100), Work(flops=0, numbers=10)]
    assert predicted(work, Device("only products", 10.0, ENDLESS, 0.0, 2)) == pytest.approx(100)
    assert predicted(work, Device("only memory", ENDLESS, 10.0, 0.0, 2)) == pytest.approx(22)
    assert predicted(work, Device("only launches", ENDLESS, ENDLESS, 3.0, 2)) == pytest.approx(6)


def test_describe_says_that_it_is_a_prediction(capsys: pytest.CaptureFixture[str]) -> None:
    dispatch(["describe", "mixer_pico_p4_32", "--gpu", "64"])
    said = capsys.readouterr().out
    assert "A100" in said and "not measured" in said
    dispatch(["describe", "mixer_pico_p4_32", "--gpu", "64", "--json"])
    assert len(json.loads(capsys.readouterr().out)["gpus"]) == 3
    with pytest.raises(WeftError, match="--gpu"):
        dispatch(["describe", "mixer_pico_p4_32", "--gpu", "0"])
