"""How weights start: the deviation of each school, biases at zero, parts with a rule of their own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from weft.networks.gmlp import SpatialGate
from weft.nn.attention import Attention
from weft.nn.blocks import Layout
from weft.nn.convolution import LocallyConnected2d
from weft.nn.embeddings import LearnedPositions, PatchEmbed, WordEmbed
from weft.nn.initialisation import SCHOOLS, initialise

INPUTS, OUTPUTS = 300, 500


@pytest.mark.parametrize(
    ("school", "deviation", "bound"),
    [
        ("xavier", (2 / (INPUTS + OUTPUTS)) ** 0.5, (6 / (INPUTS + OUTPUTS)) ** 0.5),
        ("lecun", (1 / INPUTS) ** 0.5, 2 * (1 / INPUTS) ** 0.5 / 0.8796),
        ("bert", 0.02 * 0.8796, 0.04),
        ("he", (2 / INPUTS) ** 0.5, float("inf")),
    ],
)
def test_each_school_has_its_papers_deviation(school: str, deviation: float, bound: float) -> None:
    """Glorot & Bengio 2010; flax's default; Devlin et al. 2018; He et al. 2015."""
    torch.manual_seed(0)
    layer = nn.Linear(INPUTS, OUTPUTS)
    initialise(nn.Sequential(layer), school)
    assert layer.weight.std().item() == pytest.approx(deviation, rel=0.02)
    assert layer.weight.mean().item() == pytest.approx(0, abs=deviation / 50)
    assert layer.weight.abs().max().item() <= bound * 1.0001
    assert not layer.bias.any()


def test_he_counts_the_outputs_of_a_convolution() -> None:
    """C4: the ResNets' rule, variance 2 / (k²·outputs)."""
    torch.manual_seed(0)
    conv = nn.Conv2d(30, 60, 3)
    SCHOOLS["he"](conv.weight)
    assert conv.weight.std().item() == pytest.approx((2 / (9 * 60)) ** 0.5, rel=0.03)


def test_parts_with_a_rule_of_their_own_keep_it_in_any_school() -> None:
    """Patches after LeCun, positions and words at 0.02, the gate near zero with b = 1, local layers after He."""
    for school in SCHOOLS:
        torch.manual_seed(0)
        parts = nn.ModuleDict(
            {
                "patches": PatchEmbed(3, 200, 8),
                "words": WordEmbed(500, 100, segments=2),
                "positions": LearnedPositions(200, 100),
                "gate": SpatialGate(8, Layout((16,))),
                "local": LocallyConnected2d(3, 4, 5, (20, 20)),
                "attention": Attention(64, 2),
            }
        )
        for parameter in parts.parameters():
            nn.init.constant_(parameter, 9.0)
        initialise(parts, school)
        deviations = {
            "patches": (parts["patches"].weight, (1 / 192) ** 0.5),
            "words": (parts["words"].words.weight, 0.02 * 0.8796),
            "positions": (parts["positions"].table, 0.02),
            "gate": (parts["gate"].spatial.weight, 1e-6),
            "local": (parts["local"].weight, (2 / 75) ** 0.5),
        }
        for name, (weight, deviation) in deviations.items():
            assert weight.std().item() == pytest.approx(deviation, rel=0.15), name
        assert (parts["gate"].bias == 1).all()
        for bias in (parts["patches"].bias, parts["local"].bias, parts["attention"].qkv.bias):
            assert not bias.any()
