"""Budgets: solved sizes meet them within 3 % by torch's own count, and one that cannot says what it would need."""

from __future__ import annotations

import pytest
import torch

from weft.networks.measure.cost import total_macs, total_parameters
from weft.networks.registry import build, configured
from weft.studies.compare.budget_matching import TOLERANCE, Unmatched, largest, solve

IMAGES = ["mlp", "resnet20_cifar", "rcnn_96", "vit_nano_p4_32", "mixer_nano_p4_32", "gmlp_nano_p4_32",
          "amlp_nano_p4_32", "tmlp2d_nano_p4_32", "control_identity_p4_32", "control_random_p4_32",
          "efficientnet_nano_32", "nfnet_nano_32", "bit_nano_32", "halonet_nano_32"]  # fmt: skip
TEXTS = ["lstm_text", "conv_text", "bert_tiny", "mixer_text_tiny", "gmlp_text_tiny", "control_random_text_tiny"]


def sized(name: str):
    if name in TEXTS:
        return configured(name, vocab_size=2000, max_length=64, num_classes=5)
    patch = {"patch_size": 2} if "_p4_" in name else {"block": 2} if "halo" in name else {}
    return configured(name, img_size=8, in_chans=1, num_classes=10, **patch)


@pytest.mark.parametrize("name", IMAGES + TEXTS)
@pytest.mark.parametrize("budget", [200_000, 1_000_000])
def test_the_parameters_that_torch_counts_are_within_three_percent(name: str, budget: int):
    network = solve(sized(name), "params", budget)
    with torch.device("meta"):
        count = sum(parameter.numel() for parameter in build(network).parameters())
    assert abs(count - budget) <= TOLERANCE * budget
    assert count == total_parameters(network)


@pytest.mark.parametrize("name", IMAGES + TEXTS)
def test_multiply_adds_are_within_three_percent(name: str):
    assert abs(total_macs(solve(sized(name), "macs", 5_000_000)) - 5_000_000) <= TOLERANCE * 5_000_000


@pytest.mark.parametrize("name", ["vit_nano_p4_32", "gmlp_nano_p4_32"])
def test_depth_grows_with_the_budget_too(name: str):
    depths = [solve(sized(name), "params", budget).depth for budget in (30_000, 300_000, 3_000_000)]
    assert depths == sorted(depths) and depths[0] < depths[-1]


def test_a_solved_network_keeps_its_family_and_its_proportions():
    named, found = sized("mixer_nano_p4_32"), solve(sized("mixer_nano_p4_32"), "params", 1_000_000)
    assert found.family == "mixer" and found.mixer == named.mixer
    assert found.token_dim / found.dim == pytest.approx(named.token_dim / named.dim, abs=0.05)


def test_a_budget_between_two_sizes_gets_the_nearest():
    assert total_parameters(solve(sized("rcnn_96"), "params", 900)) == 865


def test_a_width_that_is_too_narrow_to_be_built_is_not_the_smallest():
    photos = configured("resnet18", img_size=(96, 96), num_classes=5)
    assert total_parameters(solve(photos, "params", 5e6)) == pytest.approx(5e6, rel=0.03)


def test_a_budget_below_the_smallest_size_names_what_it_would_need():
    with pytest.raises(Unmatched, match=r"100 .* [\d,]+;.* --amount"):
        solve(sized("bert_tiny"), "params", 100)


def test_largest_finds_the_edge():
    assert [largest(lambda n, edge=edge: n <= edge) for edge in (0, 1, 7, 1000)] == [0, 1, 7, 1000]
