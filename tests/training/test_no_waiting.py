"""A training step asks the device for nothing: on a GPU each such question would make the host wait for it.

On the meta device there are no numbers to ask for: `.item()`, a comparison in Python or a copy to the host fail.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from training.runs import FAMILIES, configure
from weft.training.loop.display import Silent
from weft.training.loop.loop import update
from weft.training.loop.progress import MovingAverage
from weft.training.run import lifecycle
from weft.training.run.context import Run
from weft.training.run.distributed import Scaling, SingleProcess
from weft.training.run.inputs import open_inputs
from weft.training.storage.run_folder import RunFolder


def on_meta(folder: Path, family: str) -> Run:
    """A run whose network and state have shapes and no numbers; torch has no fused optimiser for these."""
    config = configure(family, steps=3)
    inputs = open_inputs(config, folder)
    run = lifecycle.assemble(RunFolder(folder), inputs.config, None, SingleProcess(), inputs, Silent())
    team = SingleProcess()
    team.device = torch.device("meta")
    core = run.core.to("meta")
    optimiser = torch.optim.SGD(inputs.groups(core), lr=1e-3, foreach=False)
    return replace(run, team=team, core=core, net=core, optimiser=optimiser, ema=MovingAverage(core, 0.9))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_asks_the_device_for_nothing(family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.nn.utils.clip_grad._device_has_foreach_support", lambda device: True)
    run = on_meta(tmp_path, family)
    for step in range(2):
        loss, norms, sound = update(run, run.train[step], step, Scaling(on=False))
        assert loss.device.type == "meta" and norms == {} and sound


def test_a_question_would_be_noticed() -> None:
    with pytest.raises(Exception, match="meta"):
        torch.ones(3, device="meta").sum().item()
