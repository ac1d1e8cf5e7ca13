"""A run that is killed, terminated or interrupted, and resumed, ends with the bits of one that was left alone."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path

import pytest
import torch
from torch import nn

from training.runs import FAMILIES, assert_same_bits, configure, curve, last_checkpoint, spawn, train
from training.runs import interrupt as interrupt_process
from weft.training.loop.progress import Progress, capture, restore
from weft.training.optim.optimisers import create_optimiser

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGTERM)


def interrupted_run(config, folder: Path, chance: random.Random) -> list[int]:
    """Train in processes of which the first are signalled at random moments; returns the signals that hit."""
    hit = [how for how in SIGNALS if interrupt_process(spawn(config, folder), folder, how, chance, 0.025)]
    process = spawn(config, folder)
    process.join()
    assert process.exitcode == 0
    return hit


@pytest.mark.parametrize("family", FAMILIES)
def test_resumed_runs_end_with_the_same_bits(family: str, tmp_path: Path) -> None:
    threads = 2 if family == "mlp" else 1  # benchmarks/kills.py has two threads for all
    config = configure(family, steps=200, model_ema_decay=0.9, checkpoint_every=2, log_every=5, threads=threads)
    train(config, tmp_path / "whole")
    hit = interrupted_run(config, tmp_path / "cut", random.Random(family))
    assert set(hit) == set(SIGNALS), "the run ended before it could be interrupted: make it longer"
    assert_same_bits(last_checkpoint(tmp_path / "whole"), last_checkpoint(tmp_path / "cut"))
    assert curve(tmp_path / "whole") == curve(tmp_path / "cut")
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut")]
    assert weights[0] == weights[1]
    told = [json.loads((tmp_path / name / "record.json").read_text()) for name in ("whole", "cut")]
    assert told[0]["learnt"] == told[1]["learnt"] and told[0]["metrics"] == told[1]["metrics"]


@pytest.mark.parametrize("opt", ["adamw", "momentum", "muon"])
def test_an_optimiser_s_state_returns_to_where_its_parameters_are(opt: str) -> None:
    """Its counters too. `meta` stands for a GPU."""
    net = nn.Linear(3, 2)
    optimiser = create_optimiser(opt, [{"params": list(net.parameters())}], 0.1, net)
    net(torch.ones(1, 3)).sum().backward()
    optimiser.step()
    checkpoint = capture(Progress(), net, optimiser, None)
    there = nn.Linear(3, 2, device="meta")
    groups = [{"params": list(there.parameters())}]
    restored = torch.optim.SGD(groups, lr=0.1)
    restore(checkpoint, there, restored, None)
    places = [value.device.type for state in restored.state.values() for value in state.values()]
    assert places and set(places) == {"meta"}
