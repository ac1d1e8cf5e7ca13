"""fp16: the loss is scaled as torch.amp.GradScaler scales it, overflows cost a step, and a resumed run is the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import formats
from training.runs import Stop, assert_same_bits, configure, curve, last_checkpoint, train
from weft.training.inference.evaluate import evaluate_run
from weft.training.run import lifecycle
from weft.training.run.distributed import INTERVAL, Scaling, scaling_for


def test_the_factor_moves_as_gradscaler_moves_it() -> None:
    """Overflows at some steps, then a streak long enough to grow."""
    finite = [True, False, True, False, False] + [True] * (INTERVAL + 3)
    weight = nn.Parameter(torch.zeros(3))
    oracle = torch.amp.GradScaler("cpu")
    optimiser = torch.optim.SGD([weight], lr=0.0)
    scaling = scaling_for("fp16")
    for sound in finite:
        oracle.scale((weight * (1.0 if sound else torch.inf)).sum()).backward()
        oracle.step(optimiser)
        oracle.update()
        optimiser.zero_grad()
        assert scaling.overflowed(sound) is not sound
        assert scaling.factor == oracle.get_scale()
    assert scaling.factor == 2.0**14


def test_gradients_are_divided_again() -> None:
    net = nn.Linear(3, 1)
    net(torch.ones(2, 3)).sum().backward()
    expected = [p.grad.clone() for p in net.parameters() if p.grad is not None]
    net.zero_grad()
    scaling = scaling_for("fp16")
    (net(torch.ones(2, 3)).sum() * scaling.factor).backward()
    scaling.undo(net)
    for parameter, gradient in zip(net.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


def test_a_factor_below_one_is_no_remedy() -> None:
    scaling = scaling_for("fp16")
    halvings = 0
    while scaling.overflowed(finite=False):
        halvings += 1
    assert halvings == 16
    assert not Scaling().overflowed(finite=False), "off: an infinite gradient is trouble at once"


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_narrow_runs_learn_and_resume_with_the_same_bits(precision: str, tmp_path: Path) -> None:
    formats.require(precision)
    config = configure("mlp", 60, precision=precision, lr=0.01, log_every=5, model_ema_decay=0.9)
    record = train(config, tmp_path / "whole")
    assert record["plan"]["precision"] == precision
    assert record["metrics"]["accuracy"] > 0.8
    assert lifecycle.start(config, tmp_path / "cut", Stop(25)).record is None
    lifecycle.resume(tmp_path / "cut")
    assert_same_bits(last_checkpoint(tmp_path / "whole"), last_checkpoint(tmp_path / "cut"))
    assert curve(tmp_path / "whole") == curve(tmp_path / "cut")
    scaling = last_checkpoint(tmp_path / "cut").numbers["scaling"]
    assert scaling["on"] is (precision == "fp16")


def test_a_step_that_overflows_is_left_out_and_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first factor that is too large for fp16 costs some steps, no roll-back."""
    formats.require("fp16")
    monkeypatch.setattr("weft.training.run.distributed.START", 2.0**40)
    record = train(configure("mlp", 80, precision="fp16", lr=0.01), tmp_path / "run")
    assert record["rollbacks"] == []
    assert last_checkpoint(tmp_path / "run").numbers["scaling"]["factor"] < 2.0**30
    assert record["metrics"]["accuracy"] > 0.7


def test_what_is_reported_is_what_the_stored_weights_do(tmp_path: Path) -> None:
    formats.require("fp16")

    record = train(configure("mlp", 40, precision="fp16"), tmp_path / "run")
    assert evaluate_run(tmp_path / "run", batch_size=32)["accuracy"] == record["metrics"]["accuracy"]
