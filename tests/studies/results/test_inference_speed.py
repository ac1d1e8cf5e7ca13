"""How fast a network is in use: timed often enough, and no longer than that takes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from weft.studies.results import inference_speed


@pytest.mark.parametrize(("warming", "each", "calls"), [(0.5, 0.01, 6), (6.0, 5.9, 1)])
def test_a_call_that_takes_long_is_timed_once(
    warming: float, each: float, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0, 0.0]

    def action() -> None:
        now[0], now[1] = now[0] + (each if now[1] else warming), now[1] + 1

    monkeypatch.setattr(inference_speed, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    assert inference_speed.median_seconds(action, 5) == pytest.approx(each if calls > 1 else warming)
    assert now[1] == calls


def test_texts_of_like_lengths_are_read_together_with_the_padding_that_they_need() -> None:
    lengths = [3, 40, 7, 33, 64, 1]
    mask = torch.arange(64) < torch.tensor(lengths)[:, None]
    ids = torch.arange(6)[:, None] * mask
    parts = list(inference_speed.of_like_lengths({"x": ids, "mask": mask, "target": torch.arange(6)}, 64))
    assert len(parts) > 1 and sorted(int(row) for part in parts for row in part["target"]) == list(range(6))
    for part in parts:
        assert part["x"].shape == part["mask"].shape and int(part["mask"].sum()) == sum(
            lengths[int(row)] for row in part["target"]
        ), "no token is cut away"
    assert parts[0]["x"].shape[1] < 64
