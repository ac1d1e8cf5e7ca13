"""Noise keyed by example: the same draws however a batch is cut or ordered, the right rate, no visible pattern."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Barrier

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from weft.nn.noise import Dropout, DropPath, example_noise, keep, number_streams, rising_rates

CPU = torch.device("cpu")


def draws(seed: int = 0, step: int = 0, stream: int = 0, examples: int = 64, values: int = 256) -> Tensor:
    """What is kept at rate 0.5, as −1 and 1."""
    with example_noise(seed, step, torch.arange(examples)):
        return keep((examples, values), 0.5, stream, CPU).float() * 2 - 1


@settings(deadline=None, max_examples=20)
@given(order=st.permutations(range(8)), cut=st.integers(1, 7), rate=st.sampled_from([0.1, 0.5]), seed=st.integers(0, 9))
def test_draws_belong_to_the_example(order: list[int], cut: int, rate: float, seed: int) -> None:
    """Any order of the batch, and any cut into micro-batches or ranks, drops the same values of the same example."""
    network = nn.Sequential(Dropout(rate), DropPath(rate), Dropout(rate))
    number_streams(network)
    x = torch.rand(8, 3, 5) + 1

    def drop(examples: list[int]) -> Tensor:
        index = torch.tensor(examples)
        with example_noise(seed, 3, index):
            return network(x[index])

    whole = drop(list(range(8)))
    assert torch.equal(drop(order), whole[torch.tensor(order)])
    assert torch.equal(torch.cat([drop(order[:cut]), drop(order[cut:])]), whole[torch.tensor(order)])


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("keyed", [True, False])
def test_the_rate_is_right_and_the_mean_is_kept(rate: float, keyed: bool) -> None:
    """Dropout of ones has mean one; the share of zeros is the rate, with a key and with torch's generator."""
    torch.manual_seed(0)
    x, layer = torch.ones(200, 2000), Dropout(rate)
    if keyed:
        with example_noise(1, 2, torch.arange(200)):
            y = layer(x)
    else:
        y = layer(x)
    assert (y == 0).float().mean().item() == pytest.approx(rate, abs=0.005)
    assert y.unique().tolist() == pytest.approx([0, 1 / (1 - rate)])


@pytest.mark.parametrize("keyed", [True, False])
def test_drop_path_drops_whole_examples_and_keeps_the_mean(keyed: bool) -> None:
    x, layer = torch.ones(20000, 3, 2), DropPath(0.3)
    torch.manual_seed(0)
    if keyed:
        with example_noise(0, 0, torch.arange(20000)):
            y = layer(x)
    else:
        y = layer(x)
    assert (y == y[:, :1, :1]).all(), "an example is kept whole or dropped whole"
    assert y.mean().item() == pytest.approx(1, abs=0.02)
    assert (y[:, 0, 0] == 0).float().mean().item() == pytest.approx(0.3, abs=0.015)


def test_seed_step_layer_and_example_each_give_other_draws() -> None:
    """No two of them share a pattern: correlations are what chance gives (deviation 1/√16384 ≈ 0.008)."""
    first = draws()
    for other in (draws(seed=1), draws(step=1), draws(stream=1), draws().roll(1, 0), draws().roll(1, 1)):
        assert abs((first * other).mean().item()) < 0.04
    assert torch.equal(first, draws())


def test_neighbouring_steps_and_examples_do_not_collide() -> None:
    """Step t and example i never draw what step t+1 and example i−1, or seed s+1, drew."""
    rows = {}
    for seed in range(3):
        for step in range(20):
            for i, row in enumerate(draws(seed, step, examples=20, values=64)):
                key = tuple(row.tolist())
                assert key not in rows, f"{(seed, step, i)} drew what {rows[key]} drew"
                rows[key] = (seed, step, i)


def test_draws_are_balanced_in_every_example_and_every_value() -> None:
    """No example is favoured and no position is: all means are within five deviations of a half."""
    kept = draws(examples=512, values=512)
    assert kept.mean(0).abs().max() < 5 / 512**0.5
    assert kept.mean(1).abs().max() < 5 / 512**0.5


def test_padding_does_not_shift_the_draws_of_real_tokens() -> None:
    """Tokens come first, so a longer batch drops the same values of the same tokens."""
    layer = Dropout(0.5)
    with example_noise(0, 0, torch.arange(4)):
        short, long = layer(torch.ones(4, 5, 6)), layer(torch.ones(4, 9, 6))
    assert torch.equal(short, long[:, :5])


def test_without_a_key_torchs_generator_decides() -> None:
    """As users of plain PyTorch expect: `manual_seed` repeats the draws, and a second call draws anew."""
    for layer in (Dropout(0.5), DropPath(0.5)):
        x = torch.ones(64, 16)
        torch.manual_seed(0)
        first, second = layer(x), layer(x)
        torch.manual_seed(0)
        assert torch.equal(layer(x), first)
        assert not torch.equal(first, second)


def test_a_key_leaves_torchs_generator_alone_and_ends_with_its_block() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    with example_noise(0, 0, torch.arange(8)):
        keyed = Dropout(0.5)(torch.ones(8, 32))
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(Dropout(0.5)(torch.ones(8, 32)), keyed)
    with pytest.raises(RuntimeError, match="inside"), example_noise(0, 0, torch.arange(8)):
        raise RuntimeError("inside")
    torch.manual_seed(0)
    unkeyed = Dropout(0.5)(torch.ones(8, 32))
    torch.manual_seed(0)
    assert torch.equal(unkeyed, nn.functional.dropout(torch.ones(8, 32), 0.5)), "the key outlived its block"


def test_each_thread_has_keys_of_its_own() -> None:
    """Batches of several threads at once, each inside its own key, draw what each draws alone."""
    alone = [draws(seed) for seed in range(4)]
    all_inside = Barrier(4)

    def together(seed: int) -> Tensor:
        with example_noise(seed, 0, torch.arange(64)):
            all_inside.wait(60)
            return keep((64, 256), 0.5, 0, CPU).float() * 2 - 1

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(together, range(4)))
    assert all(torch.equal(one, other) for one, other in zip(found, alone, strict=True))


@pytest.mark.parametrize("reentrant", [True, False])
def test_layers_recomputed_in_the_backward_pass_see_the_keys(reentrant: bool) -> None:
    layer, x = nn.Sequential(nn.Linear(8, 8), Dropout(0.5)), torch.ones(4, 8)

    def gradient(recomputed: bool) -> Tensor:
        inputs = x.clone().requires_grad_()
        with example_noise(3, 1, torch.arange(4)):
            outputs = checkpoint(layer, inputs, use_reentrant=reentrant) if recomputed else layer(inputs)
            outputs.square().sum().backward()
        return inputs.grad

    assert torch.equal(gradient(True), gradient(False))


def test_large_indices_steps_and_seeds_are_fine() -> None:
    with example_noise(2**40 + 1, 10**9, torch.tensor([2**31 + 5, 2**31 + 6])):
        kept = keep((2, 1000), 0.3, 70000, CPU)
    assert kept.float().mean().item() == pytest.approx(0.7, abs=0.05)
    assert not torch.equal(kept[0], kept[1])


def test_noise_is_for_training_only() -> None:
    x = torch.randn(4, 8)
    for layer in (Dropout(0.5).eval(), DropPath(0.5).eval(), Dropout(0.0), DropPath(0.0)):
        assert layer(x) is x


def test_layers_are_numbered_in_order() -> None:
    network = nn.Sequential(Dropout(0.1), nn.Sequential(nn.Linear(2, 2), DropPath(0.1)), Dropout(0.1))
    number_streams(network)
    assert [network[0].stream, network[1][1].stream, network[2].stream] == [0, 1, 2]


@settings(deadline=None)
@given(rate=st.floats(0, 0.9), depth=st.integers(1, 30))
def test_drop_path_rises_evenly_with_depth(rate: float, depth: int) -> None:
    """From 0 at the first block to the full rate at the last."""
    rates = rising_rates(rate, depth)
    assert len(rates) == depth and rates[0] == 0
    if depth > 1:
        assert rates[-1] == pytest.approx(rate)
        gaps = [b - a for a, b in pairwise(rates)]
        assert gaps == pytest.approx([rate / (depth - 1)] * (depth - 1))
