"""The patches of docs/patches change one file each; cost, description, matching and comparison follow by themselves."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch

from weft.networks.registry import configured, create_model

ROOT = Path(__file__).parents[2]

PROBE = """
import json, sys, torch
from weft.networks.measure.cost import total_parameters
from weft.networks.measure.description import describe
from weft.networks.registry import configured, create_model
from weft.studies.compare.candidates import Facts, make_candidates
from hashlib import sha256

def digest(name):
    torch.manual_seed(0)
    network = create_model(name).eval()
    parts = [name.encode() + value.numpy().tobytes() for name, value in network.state_dict().items()]
    with torch.no_grad():
        parts.append(network(torch.ones(2, 3, 32, 32)).numpy().tobytes())
    return sha256(b"".join(parts)).hexdigest()

name = sys.argv[1]
network, found = create_model(name), describe(configured(name))
images = torch.randn(3, 3, 32, 32)
network(images).sum().backward()
facts = Facts("digits", "image", "classes", 10, "0", 1437, {"img_size": (8, 8), "in_chans": 1})
matched = make_candidates(facts, name, "params", 120_000, with_controls=False, classical=False)[0]
print(json.dumps({
    "file": sys.modules["weft"].__file__,
    "finite": bool(network(images).isfinite().all()),
    "parameters": [total_parameters(configured(name)), sum(p.numel() for p in network.parameters())],
    "macs": [found.macs, found.counted_macs],
    "matched": matched.count["params"],
    "vit": digest("vit_pico_p4_32"),
    "own": digest("mixer_pico_p4_32"),
}))
"""


@cache
def probe(patch: str, name: str) -> dict[str, Any]:
    """What a copy of the package with a patch says of a network."""
    with TemporaryDirectory() as folder:
        return asked(Path(folder).resolve(), patch, name)


def asked(tmp_path: Path, patch: str, name: str) -> dict[str, Any]:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    applied = ["git", "apply", "-p1", str(ROOT / "docs" / "patches" / f"{patch}.patch")]
    subprocess.run(applied, cwd=tmp_path, check=True, capture_output=True, env={**os.environ, "GIT_DIR": "none"})
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src"), "WEFT_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", PROBE, name], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["file"].startswith(str(tmp_path))
    return found


def digest(name: str) -> str:
    torch.manual_seed(0)
    network = create_model(name).eval()
    parts = [name.encode() + value.numpy().tobytes() for name, value in network.state_dict().items()]
    with torch.no_grad():
        parts.append(network(torch.ones(2, 3, 32, 32)).numpy().tobytes())
    return sha256(b"".join(parts)).hexdigest()


@pytest.mark.parametrize(
    "patch, name, own_changes",
    [("layerscale-mixer", "mixer_pico_p4_32", True), ("fourier-mixer", "control_fourier_pico_p4_32", False)],
)
def test_a_patch_of_one_file_gets_the_rest_for_free(patch: str, name: str, own_changes: bool) -> None:
    text = (ROOT / "docs" / "patches" / f"{patch}.patch").read_text()
    assert text.count("diff --git") == 1
    found = probe(patch, name)
    assert found["finite"]
    assert found["parameters"][0] == found["parameters"][1]
    assert found["macs"][0] == found["macs"][1] > 0
    assert abs(found["matched"] - 120_000) <= 0.03 * 120_000
    assert found["vit"] == digest("vit_pico_p4_32")
    assert (found["own"] != digest("mixer_pico_p4_32")) is own_changes


def test_layerscale_adds_two_factors_a_channel() -> None:
    from weft.networks.measure.cost import total_parameters

    before = configured("mixer_pico_p4_32")
    found = probe("layerscale-mixer", "mixer_pico_p4_32")
    assert found["parameters"][0] == total_parameters(before) + 2 * 64 * 4
