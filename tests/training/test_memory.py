"""What a process says of its memory."""

from __future__ import annotations

import sys

import pytest
import torch

from weft import machine
from weft.training import memory


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
