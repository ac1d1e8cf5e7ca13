"""How long a request may be prepared for, and on how many threads a batch is computed."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from weft.serve.models import TIMED, Computing, Model
from weft.serve.refusal import Refusal


class Engine:
    """Computes on the clock of the test: an input takes `each` seconds on one thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, each: float) -> None:
        self.each, self.now, self.threads = each, 0.0, []
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(torch, "set_num_threads", self.threads.append)

    def outputs(self, raws: list[Any], batch_size: int) -> torch.Tensor:
        self.now += self.each * len(raws) * (10 if len(self.threads) == 1 else 1)  # the first time takes longer
        return torch.zeros(len(raws), 2)


def test_small_batches_are_computed_on_one_thread_and_large_ones_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(monkeypatch, each=0.002)
    compute = Computing(engine, threads=4)  # type: ignore[arg-type]
    for count in [1] * TIMED + [1, 49, 51, 64, 1]:
        compute([None] * count)
    assert engine.threads == [1] * TIMED + [1, 1, 4, 4, 1]


def test_networks_that_take_long_are_computed_on_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(monkeypatch, each=0.5)
    compute = Computing(engine, threads=2)  # type: ignore[arg-type]
    for _ in range(TIMED + 2):
        compute([None])
    assert engine.threads == [1] * TIMED + [2, 2]


@pytest.mark.parametrize("gone", [False, True], ids=["too late", "the client has gone"])
def test_nothing_is_decoded_for_nobody(gone: bool) -> None:
    """After the second of four pictures the time is over, or the client has hung up."""
    decoded: list[int] = []
    request: Any = SimpleNamespace(scope={"state": {}})
    loop, clock = asyncio.new_event_loop(), [0.0]
    loop.time = lambda: clock[0]  # type: ignore[method-assign]

    def prepared(raw: int) -> int:
        decoded.append(raw)
        if raw == 1:
            request.scope["state"]["gone"] = gone
            clock[0] += 0.0 if gone else 100.0
        return raw

    inputs: Any = SimpleNamespace(is_quick=lambda raw: True, prepared=prepared)
    model = Model("one", SimpleNamespace(), inputs, SimpleNamespace(), SimpleNamespace())  # type: ignore[arg-type]
    with pytest.raises(Refusal) as refused:
        loop.run_until_complete(model.answers([0, 1, 2, 3], request, deadline=50.0))
    loop.close()
    assert refused.value.status == 503 and decoded == [0, 1]
