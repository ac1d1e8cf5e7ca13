"""Batches: who is computed together, who waits, who is refused, and who is not computed because nobody waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from weft.serve.batching import Batcher, Window
from weft.serve.refusal import Refusal


class Network:
    """Doubles its inputs; can be made to wait until it is released."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.free = threading.Event()
        self.free.set()

    def __call__(self, raws: list[Any]) -> Any:
        self.free.wait(30)
        self.batches.append(raws)
        if "bad" in raws:
            raise ValueError("bad weights")
        return np.array([[2 * raw] for raw in raws])

    def batch(self, size: int, seconds: float) -> None:
        """Nothing is observed."""


@pytest.fixture
def network() -> Iterator[Network]:
    found = Network()
    yield found
    found.free.set()


def run(network: Network, scene: Callable[[Batcher], Awaitable[Any]], **settings: Any) -> Any:
    """Play a scene with a batcher for the network."""
    window = Window(**{"max_batch": 4, "max_delay": 0.2, "max_queue": 8, **settings})

    async def played() -> Any:
        with ThreadPoolExecutor(1) as executor:
            return await scene(Batcher(network, executor, window, network))

    return asyncio.run(played())


async def asked(batcher: Batcher, *raws: Any, seconds: float = 30, gone: Callable[[], bool] = lambda: False) -> Any:
    with batcher.accept(len(raws)):
        found = await batcher.ask(raws, asyncio.get_running_loop().time() + seconds, gone)
    return found[:, 0].tolist()


def test_inputs_that_come_together_are_computed_together_and_answered_apart(network: Network) -> None:
    async def scene(batcher: Batcher) -> Any:
        return await asyncio.gather(*(asked(batcher, number) for number in range(4)))

    assert run(network, scene) == [[0], [2], [4], [6]]
    assert network.batches == [[0, 1, 2, 3]]


def test_one_that_comes_alone_does_not_wait(network: Network) -> None:
    assert run(network, lambda batcher: asked(batcher, 1), max_delay=60) == [2]  # a minute would be noticed


def test_after_a_batch_of_several_the_window_is_kept(network: Network) -> None:
    async def scene(batcher: Batcher) -> None:
        await asyncio.gather(*(asked(batcher, number) for number in range(2)))
        first = asyncio.create_task(asked(batcher, 10))
        await asyncio.sleep(0.01)
        await asyncio.gather(first, asked(batcher, 11))

    run(network, scene, max_delay=5.0, max_batch=2)
    assert network.batches[-1] == [10, 11]


def test_a_batch_has_at_most_its_size_and_a_long_request_is_cut(network: Network) -> None:
    assert run(network, lambda batcher: asked(batcher, *range(7))) == [2 * number for number in range(7)]
    assert [len(batch) for batch in network.batches] == [4, 3]


def test_a_full_batch_is_handed_over_while_another_is_computed_and_others_wait_for_more(network: Network) -> None:
    network.free.clear()

    async def scene(batcher: Batcher) -> tuple[int, int]:
        async def come(*numbers: int) -> list[asyncio.Task[Any]]:
            tasks = [asyncio.create_task(asked(batcher, number)) for number in numbers]
            await asyncio.sleep(0.01)
            return tasks

        tasks = [*await come(0, 1, 2, 3), *await come(4, 5, 6, 7), *await come(8, 9)]
        found = len(batcher._under_way), len(batcher._queue)
        network.free.set()
        assert await asyncio.gather(*tasks) == [[2 * number] for number in range(10)]
        return found

    assert run(network, scene, max_queue=16) == (2, 2)
    assert network.batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_a_full_queue_refuses_at_once_and_says_when_to_come_back(network: Network) -> None:
    network.free.clear()

    async def scene(batcher: Batcher) -> Refusal:
        accepted = [asyncio.create_task(asked(batcher, number)) for number in range(8)]
        await asyncio.sleep(0.01)
        with pytest.raises(Refusal) as refused:
            await asked(batcher, 9)
        network.free.set()
        assert await asyncio.gather(*accepted) == [[2 * number] for number in range(8)]
        assert await asked(batcher, 9) == [18]  # there is room again
        return refused.value

    refusal = run(network, scene)
    assert refusal.status == 503 and refusal.retry_after is not None and refusal.retry_after >= 1
    assert refusal.response().headers["retry-after"] == str(refusal.retry_after)


def test_what_waits_too_long_is_told_and_not_computed(network: Network) -> None:
    network.free.clear()

    async def scene(batcher: Batcher) -> None:
        first = asyncio.create_task(asked(batcher, 1))
        await asyncio.sleep(0.05)
        with pytest.raises(Refusal) as refused:
            await asked(batcher, 2, seconds=0.05)
        assert refused.value.status == 503 and batcher.accepted == 1
        network.free.set()
        assert await first == [2]
        assert await asked(batcher, 3) == [6]

    run(network, scene)
    assert [2] not in network.batches and all(2 not in batch for batch in network.batches)


def test_for_a_client_that_went_away_nothing_is_computed(network: Network) -> None:
    network.free.clear()

    async def scene(batcher: Batcher) -> None:
        first = asyncio.create_task(asked(batcher, 1))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(asked(batcher, 2, gone=lambda: True))
        third = asyncio.create_task(asked(batcher, 3))
        await asyncio.sleep(0.05)
        third.cancel()
        network.free.set()
        await first
        with pytest.raises(Refusal):
            await second
        assert batcher.accepted == 0

    run(network, scene)
    assert network.batches == [[1]]


def test_an_input_that_breaks_its_batch_costs_nobody_else(network: Network) -> None:
    async def scene(batcher: Batcher) -> None:
        results = await asyncio.gather(*(asked(batcher, raw) for raw in (1, "bad", 2)), return_exceptions=True)
        assert results[0] == [2] and results[2] == [4] and isinstance(results[1], ValueError)
        assert await asked(batcher, 5) == [10]

    run(network, scene)
