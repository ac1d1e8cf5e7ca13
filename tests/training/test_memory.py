"""What a process says of its memory."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from training.runs import configure
from weft import machine
from weft.errors import WeftError
from weft.training.loop.display import Silent
from weft.training.run import lifecycle, memory
from weft.training.run.inputs import LabelledInputs


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux can be told to forget")
def test_the_peak_of_one_run_is_not_that_of_the_run_before():
    block = torch.ones(80_000_000)  # 320 MB
    high = machine.memory_peak()
    del block
    machine.forget_peak()
    assert machine.memory_peak() < high - 200_000_000
    block = torch.ones(20_000_000)
    assert machine.memory_peak() - memory.resident() < 50_000_000
    del block


def test_processes_of_one_machine_share_what_is_free(monkeypatch: pytest.MonkeyPatch):
    whole = memory.available()
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert memory.available() < whole / 2


def test_weights_that_cannot_fit_are_refused_before_they_are_allocated(tmp_path: Path):
    config = replace(configure(steps=2), network={"hidden": [2**24, 2**24]})
    with pytest.raises(WeftError, match=r"parameters takes .* choose a smaller"):
        lifecycle.start(config, tmp_path / "run", Silent())


def test_what_training_takes_beside_the_weights_is_counted_before_they_are_allocated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """4096 × 4096 weights and some: 70 MB that would fit, and with Adam's states more than what is free."""
    monkeypatch.setattr(machine, "memory_available", lambda: 300 << 20)
    monkeypatch.setattr(LabelledInputs, "create", None)  # would fail if it were called
    config = replace(configure(steps=2), network={"hidden": [4096, 4096]})
    with pytest.raises(WeftError, match=r"to train a mlp network of 17,\S+ parameters takes .* choose a smaller"):
        lifecycle.start(config, tmp_path / "run", Silent())
