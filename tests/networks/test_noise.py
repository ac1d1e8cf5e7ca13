"""Noise in whole networks: keyed by example, whatever the batch, the order or the number of processes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from networks.small import SMALL, batch, shaken, small
from weft.networks.base.network import Network
from weft.networks.config import TokenConfig
from weft.nn.noise import Noisy, example_noise

WITHOUT_NORM: dict[str, dict[str, Any]] = {"mlp": {"norm": False}, "rcnn_96": {"norm": False}}
BATCH_NORMED = ("resnet", "vit_nano_resnet20", "efficientnet", "halonet")  # their outputs depend on the batch by design
NOISY = [name for name in SMALL if not name.startswith(BATCH_NORMED)]


def noisy(name: str) -> Network:
    network = small(name, drop_rate=0.3, **WITHOUT_NORM.get(name, {}))
    if isinstance(network.config, TokenConfig):
        network = small(name, drop_rate=0.3, drop_path_rate=0.5, head_drop_rate=0.2)
    return shaken(network).double().train()


def run(network: Network, inputs: dict[str, Tensor], examples: list[int], step: int = 4) -> Tensor:
    chosen = torch.tensor(examples)
    rows = {key: value[chosen] for key, value in inputs.items()}
    rows = {key: value.double() if value.is_floating_point() else value for key, value in rows.items()}
    with example_noise(7, step, chosen + 1000):
        return network(**rows)


@pytest.mark.parametrize("name", NOISY)
def test_an_example_is_dropped_alike_in_any_batch(name: str) -> None:
    """The same draws in one batch, in two halves, and in another order."""
    network = noisy(name)
    inputs = batch(network)
    whole = run(network, inputs, [0, 1, 2, 3, 4, 5])
    halves = torch.cat([run(network, inputs, [0, 1]), run(network, inputs, [2, 3, 4, 5])])
    torch.testing.assert_close(halves, whole)
    torch.testing.assert_close(run(network, inputs, [5, 3, 1, 0, 2, 4]), whole[[5, 3, 1, 0, 2, 4]])


@pytest.mark.parametrize("name", NOISY)
def test_another_step_drops_other_values(name: str) -> None:
    network = noisy(name)
    inputs = batch(network)
    first, second = (run(network, inputs, [0, 1, 2, 3], step) for step in (4, 5))
    assert not torch.allclose(first, second)
    assert torch.equal(first, run(network, inputs, [0, 1, 2, 3], 4))


@pytest.mark.parametrize("name", NOISY)
def test_gradients_of_a_batch_in_pieces_add_up(name: str) -> None:
    """What gradient accumulation and several processes rely on."""
    network = noisy(name)
    inputs = batch(network)

    def gradient(*pieces: list[int]) -> list[Tensor]:
        network.zero_grad()
        for piece in pieces:
            run(network, inputs, piece).square().sum().backward()
        return [parameter.grad.clone() for parameter in network.parameters() if parameter.grad is not None]

    for one, two in zip(gradient([0, 1, 2, 3]), gradient([3, 0], [2, 1]), strict=True):
        torch.testing.assert_close(two, one)


@pytest.mark.parametrize("name", SMALL)
def test_every_noisy_layer_draws_for_itself(name: str) -> None:
    """Each layer has a stream of its own, and none is used twice in one pass."""
    network = small(name, drop_rate=0.2)
    layers = [module for module in network.modules() if isinstance(module, Noisy)]
    assert layers and len({layer.stream for layer in layers}) == len(layers)
    calls: list[Noisy] = []
    for layer in layers:
        layer.register_forward_hook(lambda module, *_: calls.append(module))
    network.train()(**batch(network))
    assert len(calls) == len(set(calls))


@pytest.mark.parametrize("name", NOISY)
def test_evaluation_is_free_of_noise(name: str) -> None:
    network = noisy(name).eval()
    inputs = batch(network)
    assert torch.equal(run(network, inputs, [0, 1, 2]), run(network, inputs, [0, 1, 2], step=9))


def test_without_a_key_torchs_generator_decides() -> None:
    network = noisy("vit_nano_p4_32")
    x = batch(network)["x"].double()
    torch.manual_seed(0)
    first, second = network(x), network(x)
    torch.manual_seed(0)
    assert torch.equal(network(x), first) and not torch.equal(first, second)
