"""Two processes compute what one computes, and recover when one of them is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from training.runs import configure, curve, last_checkpoint, train
from training.test_loop import Stop
from weft.data.config import AugmentConfig
from weft.training import session
from weft.training.config import RunConfig
from weft.training.folder import create
from weft.training.journal import read_events

STEPS = 12


def torchrun(folder: Path, *words: str, processes: int = 2) -> subprocess.Popen[str]:
    """`weft train --resume FOLDER --processes 2`, started."""
    command = [sys.executable, "-m", "weft", "train", "--resume", str(folder), "--processes", str(processes), *words]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def train_together(config: RunConfig, folder: Path, *words: str) -> None:
    create(folder).write_asked(config)
    process = torchrun(folder, *words)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output


def assert_close(one: Path, other: Path, tolerance: float = 1e-4) -> None:
    """Weights of two runs equal within float rounding (differences of 2e-7 were seen)."""
    first, second = last_checkpoint(one), last_checkpoint(other)
    assert first.step == second.step
    for name, value in first.tensors.items():
        if name.startswith("model."):
            # a key's bias has no gradient but rounding (softmax ignores it), which Adam makes as large as any other
            slack = 1e-4 if name.endswith("qkv.bias") else 1e-6
            torch.testing.assert_close(second.tensors[name], value, rtol=tolerance, atol=slack, msg=f"{name} differs")
    pair = [[event for event in curve(path) if event["kind"] == "evaluation"] for path in (one, other)]
    for mine, theirs in zip(*pair, strict=True):
        assert mine["select_loss"] == pytest.approx(theirs["select_loss"], rel=tolerance)


def images() -> RunConfig:
    """Batch norm, Mixup, dropout, class weights and an average together."""
    config = configure("resnet", STEPS, class_weights="balanced", smoothing=0.1, model_ema=0.9)
    return replace(
        config, augment=AugmentConfig(mixup=0.4, crop_padding=1), network={**config.network, "drop_rate": 0.1}
    )


def text() -> RunConfig:
    """Padded sentences of many lengths, dropout, micro-batches, and a batch that two ranks cannot share evenly."""
    config = configure("text", STEPS, batch_size=31, accumulate=2)
    return replace(config, network={**config.network, "drop_rate": 0.1})


@pytest.mark.slow
@pytest.mark.parametrize("make", [images, text])
def test_two_processes_equal_one(make: Any, tmp_path: Path) -> None:
    train(make(), tmp_path / "one")
    train_together(make(), tmp_path / "two", "--strategy", "ddp")
    assert_close(tmp_path / "one", tmp_path / "two")


@pytest.mark.slow
def test_sharded_processes_equal_one(tmp_path: Path) -> None:
    config = configure("vit", STEPS, model_ema=0.9)
    train(config, tmp_path / "one")
    train_together(config, tmp_path / "two", "--strategy", "fsdp")
    assert_close(tmp_path / "one", tmp_path / "two")


@pytest.mark.slow
def test_a_checkpoint_of_one_process_is_resumed_by_two_and_back(tmp_path: Path) -> None:
    config = configure("resnet", STEPS, log_every=2, checkpoint_every=4)
    train(config, tmp_path / "whole")
    for name in ("one_then_two", "two_then_one"):
        folder = tmp_path / name
        if name == "one_then_two":
            assert session.start(config, folder, Stop(6)).record is None
            process = torchrun(folder)
        else:
            create(folder).write_asked(config)
            process = torchrun(folder)
            wait_for_step(folder, 4)
            process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=300)
        if name == "two_then_one":
            session.resume(folder)
        assert last_checkpoint(folder).step == STEPS, output
        assert_close(tmp_path / "whole", folder)


def wait_for_step(folder: Path, step: int, seconds: float = 200) -> None:
    """Wait until the run's journal has come to `step`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if any(event["step"] >= step for event in read_events(folder / "metrics.jsonl")):
            return
        time.sleep(0.02)
    raise AssertionError(f"{folder} did not come to step {step}")


@pytest.mark.slow
def test_a_killed_rank_is_recovered_and_ends_with_the_same_bits(tmp_path: Path) -> None:
    """torchrun restarts both ranks from the last checkpoint; two processes uninterrupted are the yardstick."""
    config = configure("mlp", 400, checkpoint_every=5, log_every=5, eval_every=20.0)
    train_together(config, tmp_path / "whole")
    create(tmp_path / "cut").write_asked(config)
    process = torchrun(tmp_path / "cut")
    wait_for_step(tmp_path / "cut", 20)
    os.kill(rank_of(process.pid, 1), signal.SIGKILL)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    one, other = last_checkpoint(tmp_path / "whole"), last_checkpoint(tmp_path / "cut")
    assert one.step == other.step == 400
    assert all(torch.equal(value, other.tensors[name]) for name, value in one.tensors.items())


def rank_of(launcher: int, rank: int) -> int:
    """Process id of a rank started by a torchrun."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    for child in children:
        environment = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        if f"RANK={rank}".encode() in environment:
            return int(child)
    raise AssertionError(f"no rank {rank} among the children of {launcher}")
