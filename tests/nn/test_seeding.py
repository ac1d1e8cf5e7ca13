"""Random numbers of one thread alone: those of `manual_seed`, without taking torch's generator from anybody."""

from __future__ import annotations

import threading

import torch
from torch import Tensor, nn

from weft.nn.initialisation import seeded


def draws() -> list[Tensor]:
    """One of each way to draw."""
    x = torch.empty(7)
    layers = [nn.Linear(3, 3), nn.Conv2d(2, 2, 3), nn.LSTM(3, 3), nn.Embedding(4, 2)]
    return [
        *(parameter.detach() for layer in layers for parameter in layer.parameters()),
        *(nn.init.trunc_normal_(x.clone()), nn.init.orthogonal_(torch.empty(4, 4)), x.clone().uniform_()),
        *(torch.rand(5), torch.randn(3, 3), torch.randperm(9), torch.rand(3, dtype=torch.float64)),
        *(torch.randint(10, (4,)), torch.randint(2, 10, (4,)), torch.randint_like(x, 5), torch.randint_like(x, 2, 5)),
        *(torch.rand_like(x), torch.randn_like(x), torch.normal(0.0, 1.0, (3,)), torch.normal(torch.zeros(3), 1.0)),
        *(torch.bernoulli(torch.full((4,), 0.5)), torch.multinomial(torch.ones(5), 3), x.clone().exponential_()),
    ]


def test_the_numbers_are_those_of_manual_seed_and_torchs_generator_is_left_alone() -> None:
    torch.manual_seed(5)
    expected, before = draws(), torch.get_rng_state()
    with seeded(5):
        found = draws()
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    assert torch.equal(torch.get_rng_state(), before)


def test_another_thread_that_draws_and_seeds_all_the_time_changes_nothing() -> None:
    done = threading.Event()

    def disturb() -> None:
        while not done.is_set():
            torch.manual_seed(1)
            torch.rand(3)

    with seeded(5):
        expected = draws()
    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for _ in range(20):
            with seeded(5):
                assert all(torch.equal(one, other) for one, other in zip(draws(), expected, strict=True))
    finally:
        done.set()
        thread.join()


def test_a_generator_of_ones_own_is_used_and_other_devices_are_left_alone() -> None:
    with seeded(5):
        own = torch.rand(4, generator=torch.Generator().manual_seed(9))
        nothing = nn.Linear(3, 3, device="meta")
    assert torch.equal(own, torch.rand(4, generator=torch.Generator().manual_seed(9)))
    assert nothing.weight.device.type == "meta"
