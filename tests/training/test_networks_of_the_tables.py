"""EfficientNet, NFNet, BiT, HaloNet and DeiT train on digits, and come back from their folders as they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import weft
from networks.small import SMALL
from training.runs import configure, curve, train
from weft import machine
from weft.errors import WeftError

SMALL_SIDE = {"img_size", "num_classes"}  # which the data say
NETWORKS: dict[str, dict[str, Any]] = {
    "efficientnet_nano_32": {},
    "nfnet_nano_32": {"clip_mode": "agc"},
    "bit_nano_32": {},
    "halonet_nano_32": {},
    "deit_pico_distilled_p4_32": {},
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_few_steps_on_digits_lower_the_loss(name: str, tmp_path: Path) -> None:
    """T1–T5: from the source to a trained network in a folder."""
    settings = {key: value for key, value in SMALL[name].items() if key not in SMALL_SIDE}
    settings |= {"patch_size": 2} if name.startswith("deit") else {}
    config = configure(model=name, network=settings, steps=24, lr=5e-3, log_every=1, **NETWORKS[name])
    train(config, tmp_path / "run")
    losses = [event["loss"] for event in curve(tmp_path / "run") if event["kind"] == "train"]
    assert len(losses) == 24 and sum(losses[-4:]) < sum(losses[:4])
    assert type(weft.load(tmp_path / "run").network) is type(weft.create_model(name))


def test_a_network_larger_than_memory_is_refused_before_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """T3: counted by formula, so nothing is allocated."""
    monkeypatch.setattr(machine, "memory_available", lambda: 2 << 30)
    with pytest.raises(WeftError, match=r"936,533,224 parameters takes 3\.5 GiB and 2\.0 are free; choose a smaller"):
        weft.create_model("resnetv2_152x4_bit")
    with torch.device("meta"):
        weft.create_model("resnetv2_152x4_bit")
