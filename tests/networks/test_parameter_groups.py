"""Parameter groups: weights decay; norms, biases, positions and the class token do not."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from networks.small import SMALL, batch, small
from weft.networks.base.network import Network
from weft.networks.registry import REGISTRY, create_model
from weft.nn.norm import BatchNorm1d, BatchNorm2d

NORMS = (nn.LayerNorm, nn.GroupNorm, BatchNorm1d, BatchNorm2d)

SPARED = ("table", "height_rel", "width_rel", "class_token", "distill_token", "gain", "skipinit_gain")


def split(network: Network) -> tuple[set[str], set[str]]:
    """Names of the parameters that decay and of those that do not."""
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    decayed, spared = network.parameter_groups(0.05)
    assert (decayed["weight_decay"], spared["weight_decay"]) == (0.05, 0.0)
    return {names[id(p)] for p in decayed["params"]}, {names[id(p)] for p in spared["params"]}


@pytest.mark.parametrize("name", REGISTRY)
def test_every_parameter_is_in_exactly_one_group(name: str) -> None:
    """All registered names, shallow, on the meta device."""
    changes = {"depth": 1} if hasattr(REGISTRY[name], "depth") else {}
    with torch.device("meta"):
        network = create_model(name, **changes)
    decayed, spared = network.parameter_groups(0.1)
    ids = [id(parameter) for group in (decayed, spared) for parameter in group["params"]]
    assert len(ids) == len(set(ids))
    assert set(ids) == {id(parameter) for parameter in network.parameters()}


@pytest.mark.parametrize("name", SMALL)
def test_vectors_that_shift_or_scale_do_not_decay_and_matrices_do(name: str) -> None:
    network = small(name)
    decayed, spared = split(network)
    for path, module in network.named_modules():
        for key, _ in module.named_parameters(recurse=False):
            full = f"{path}.{key}" if path else key
            shifts = key.startswith("bias") or isinstance(module, NORMS) or key in SPARED
            assert (full in spared) is shifts, full
            assert (full in decayed) is not shifts, full


def test_what_is_spared_by_name() -> None:
    """A3, A4, M3, F2: positions, class token, gate bias and PReLU's slope are spared; embeddings and W are not."""
    decayed, spared = split(small("vit_nano_p4_32"))
    assert {"class_token", "positions.table", "embed.bias"} <= spared and "embed.weight" in decayed
    decayed, spared = split(small("tmlp_nano_p4_32", act="prelu"))
    assert {"blocks.0.gate.bias", "blocks.0.act.weight"} <= spared and "blocks.0.gate.spatial.weight" in decayed
    decayed, spared = split(small("bert_tiny"))
    assert {"embed.words.weight", "embed.segments.weight"} <= decayed and "embed_norm.norm.weight" in spared


def test_an_optimiser_takes_the_groups_as_they_are() -> None:
    """With no gradient at all, decay moves the weights and nothing else."""
    network = small("mixer_nano_p4_32")
    before = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    optimiser = torch.optim.SGD(network.parameter_groups(0.5), lr=0.1)
    (network(**batch(network)) * 0).sum().backward()
    optimiser.step()
    decayed, _ = split(network)
    for name, parameter in network.named_parameters():
        expected = before[name] * (1 - 0.05) if name in decayed else before[name]
        torch.testing.assert_close(parameter.detach(), expected)
