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

from training.runs import Stop, assert_close, configure, last_checkpoint, train, train_together
from weft.data.config import AugmentConfig
from weft.training.config import RunConfig
from weft.training.run import lifecycle
from weft.training.storage.metrics_log import read_events
from weft.training.storage.run_folder import create

STEPS = 12


def torchrun(folder: Path, *words: str, processes: int = 2) -> subprocess.Popen[str]:
    """`weft train --resume FOLDER --processes 2`, started."""
    command = [sys.executable, "-m", "weft", "train", "--resume", str(folder), "--processes", str(processes), *words]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def images() -> RunConfig:
    """Batch norm, Mixup, dropout, class weights and an average together."""
    config = configure("resnet", STEPS, class_weights="balanced", smoothing=0.1, model_ema_decay=0.9)
    return replace(
        config, augment=AugmentConfig(mixup=0.4, crop_padding=1), network={**config.network, "drop_rate": 0.1}
    )


def text() -> RunConfig:
    """Padded sentences of many lengths, dropout, micro-batches, and a batch that two ranks cannot share evenly."""
    config = configure("text", STEPS, batch_size=31, grad_accum_steps=2)
    return replace(config, network={**config.network, "drop_rate": 0.1})


@pytest.mark.parametrize("make", [images, text])
def test_two_processes_equal_one(make: Any, tmp_path: Path) -> None:
    train(make(), tmp_path / "one")
    train_together(make(), tmp_path / "two")
    assert_close(tmp_path / "one", tmp_path / "two")


def test_sharded_processes_equal_one(tmp_path: Path) -> None:
    config = configure("vit", STEPS, model_ema_decay=0.9)
    train(config, tmp_path / "one")
    train_together(config, tmp_path / "two", "fsdp")
    assert_close(tmp_path / "one", tmp_path / "two")


def test_a_checkpoint_of_one_process_is_resumed_by_two(tmp_path: Path) -> None:
    config = configure("resnet", STEPS, log_every=2, checkpoint_every=4)
    train(config, tmp_path / "whole")
    assert lifecycle.start(config, tmp_path / "run", Stop(6)).record is None
    train_together(config, tmp_path / "run")
    assert last_checkpoint(tmp_path / "run").step == STEPS
    assert_close(tmp_path / "whole", tmp_path / "run")


@pytest.mark.slow
def test_a_terminated_command_of_two_processes_is_resumed_by_one(tmp_path: Path) -> None:
    config = configure("resnet", STEPS, log_every=2, checkpoint_every=4)
    train(config, tmp_path / "whole")
    create(tmp_path / "run", config).release()
    process = torchrun(tmp_path / "run")
    wait_for_step(tmp_path / "run", 4)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=300)
    lifecycle.resume(tmp_path / "run")
    assert last_checkpoint(tmp_path / "run").step == STEPS, output
    assert_close(tmp_path / "whole", tmp_path / "run")


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
    config = configure("mlp", 200, checkpoint_every=5, log_every=5, eval_every=800)
    train_together(config, tmp_path / "whole")
    create(tmp_path / "cut", config).release()
    process = torchrun(tmp_path / "cut")
    wait_for_step(tmp_path / "cut", 20)
    os.kill(rank_of(process.pid, 1), signal.SIGKILL)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    one, other = last_checkpoint(tmp_path / "whole"), last_checkpoint(tmp_path / "cut")
    assert one.step == other.step == 200
    assert all(torch.equal(value, other.tensors[name]) for name, value in one.tensors.items())


def rank_of(launcher: int, rank: int) -> int:
    """Process id of a rank started by a torchrun."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    for child in children:
        environment = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        if f"RANK={rank}".encode() in environment:
            return int(child)
    raise AssertionError(f"no rank {rank} among the children of {launcher}")
