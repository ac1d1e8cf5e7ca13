"""How whole networks start: as their papers say, from finite and sensible outputs."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from networks.small import CLASSES, SMALL, batch, small
from weft.networks.config import ImageTokensConfig
from weft.networks.gmlp import SpatialGate
from weft.networks.registry import REGISTRY, create_model
from weft.networks.resnet import BasicBlock
from weft.nn.norm import BatchNorm1d, BatchNorm2d
from weft.training.objective import example_losses


@pytest.mark.parametrize("name", SMALL)
def test_biases_start_at_zero_and_norms_at_one(name: str) -> None:
    """All but the gate's bias, which its own test checks, the LSTM's, and a last norm that silences its branch."""
    network = small(name)
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d) and module.bias is not None:
            assert not module.bias.any()
        if isinstance(module, nn.LayerNorm | BatchNorm1d | BatchNorm2d):
            assert not module.bias.any()
            assert (module.weight == 1).all() or (module.weight == 0).all()


@pytest.mark.parametrize("name", SMALL)
def test_training_starts_near_chance(name: str) -> None:
    """F3: the first loss is about log K; exactly log K where the head starts at zero."""
    network = small(name, drop_rate=0.0).train()
    loss = example_losses("classes", network(**batch(network)), torch.arange(6) % CLASSES).mean().item()
    if isinstance(network.config, ImageTokensConfig):
        assert loss == pytest.approx(math.log(CLASSES), abs=1e-6)
    assert loss == pytest.approx(math.log(CLASSES), abs=0.4)


def test_published_schools_of_the_named_sizes() -> None:
    """ViT and gMLP after Glorot (the published ViT code, timm), Mixer after LeCun (flax), text after BERT."""
    schools = {"vit": "xavier", "gmlp": "xavier", "mixer": "lecun", "bert": "bert", "text_gmlp": "bert"}
    for config in REGISTRY.values():
        if config.family in schools:
            assert config.init == schools[config.family]  # type: ignore[attr-defined]


def test_the_school_reaches_the_blocks() -> None:
    """M1, A3, A4: deviations measured in a network, not in a layer by itself."""
    torch.manual_seed(0)
    mixer = create_model("mixer_nano_p4_32", depth=1).blocks[0]
    assert mixer.channels.fc1.weight.std().item() == pytest.approx(128**-0.5, rel=0.05)
    assert mixer.mixer.fc1.weight.std().item() == pytest.approx(64**-0.5, rel=0.05)
    vit = create_model("vit_nano_p4_32", depth=1).blocks[0]
    assert vit.channels.fc1.weight.std().item() == pytest.approx((2 / (192 + 384)) ** 0.5, rel=0.05)
    bert = create_model("bert_tiny", depth=1)
    for weight in (
        bert.blocks[0].mixer.qkv.weight,
        bert.embed.words.weight,
        bert.pooler[0].weight,
        bert.positions.table,
    ):
        assert weight.std().item() == pytest.approx(0.02, rel=0.15)


def test_a_resnet_starts_as_its_shortcuts() -> None:
    """C4: the last norm of every branch starts at zero in ResNet-18, and at one in the CIFAR networks of the paper."""
    silenced, plain = create_model("resnet18_cifar", widths=(8, 8, 8, 8)), create_model("resnet20_cifar")
    for network, value in ((silenced, 0), (plain, 1)):
        blocks = [module for module in network.modules() if isinstance(module, BasicBlock)]
        assert blocks and all((block.last_norm.weight == value).all() for block in blocks)  # type: ignore[operator]


def test_a_resnets_convolutions_start_after_he() -> None:
    """C4: variance 2 / (k²·outputs)."""
    torch.manual_seed(0)
    conv = create_model("resnet18_cifar").trunk.layer3[1].conv1
    assert conv.weight.std().item() == pytest.approx((2 / (9 * 256)) ** 0.5, rel=0.02)


@pytest.mark.parametrize(("form", "start"), [("linear", 0), ("additive", 0), ("multiplicative", 1), ("split", 1)])
def test_gates_of_a_network_start_as_their_form_needs(form: str, start: float) -> None:
    """M3: the school of the network does not overwrite the rule of the gate."""
    network = small("gmlp_nano_p4_32", gate=form)
    gates = [module for module in network.modules() if isinstance(module, SpatialGate)]
    assert len(gates) == 2
    for gate in gates:
        assert (gate.bias == start).all()
        assert (gate.spatial.weight.std() < 1e-5).item() is (form != "linear")


def test_a_gmlp_starts_without_mixing_tokens() -> None:
    """M3: with W ≈ 0 and b = 1 a block begins as a channel MLP: a token's result depends on that token alone."""
    network = small("gmlp_nano_p4_32").double()
    x = torch.randn(1, 3, 16, 16, dtype=torch.float64)
    y = x.clone()
    y[..., :4, :4] += 1  # the first patch
    moved = (network.forward_features(x) - network.forward_features(y)).abs().amax(-1)[0]
    assert moved[0] > 0.1 and moved[1:].max() < 1e-3


def test_the_class_token_starts_at_zero_and_positions_small() -> None:
    """A3."""
    network = create_model("vit_nano_p4_32", depth=1)
    assert not network.class_token.any()
    assert network.positions.table.std().item() == pytest.approx(0.02, rel=0.05)


def test_an_lstm_keeps_torchs_start() -> None:
    """A6: uniform in ±1/√hidden, biases too."""
    lstm = small("lstm_text").lstm
    for parameter in lstm.parameters():
        assert parameter.abs().max() <= 16**-0.5
        assert parameter.std().item() == pytest.approx(16**-0.5 / 3**0.5, rel=0.2)
