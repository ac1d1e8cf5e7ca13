"""Mixers and networks that are not weft's: what they get, and when they are refused."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from forking import command
from weft.errors import WeftError
from weft.imported import TRUSTED, trust, trusted
from weft.networks.config import ForeignConfig
from weft.networks.measure.cost import total_macs, total_parameters
from weft.networks.measure.description import describe
from weft.networks.measure.receptive_field import receptive_field
from weft.networks.registry import (
    MIXERS,
    build,
    config_from_dict,
    configured,
    create_model,
    mixer_class,
    register_mixer,
)

MODULE = """
from torch import nn

class Shift(nn.Module):
    def __init__(self, dim, tokens):
        super().__init__()
        self.scale = nn.Linear(dim, dim)
    def forward(self, x):
        return self.scale(x.roll(1, dims=1))

class Net(nn.Module):
    def __init__(self, num_classes, in_chans=3, width=4):
        super().__init__()
        self.conv = nn.Conv2d(in_chans, width, 3, padding=1)
        self.head = nn.Linear(width, num_classes)
    def forward(self, x):
        return self.head(self.conv(x).relu().mean((2, 3)))

class Wrong(Net):
    def forward(self, x):
        return self.conv(x)

class NoClasses(nn.Module):
    def __init__(self):
        super().__init__()

class Broken(nn.Module):
    def __init__(self, num_classes):
        raise OSError("the disk is full")

class Fails(Net):
    def forward(self, x):
        return self.conv(x[:, :, 99])

class Flat(nn.Module):
    def forward(self, x):
        return x[:, 0, :10]

class Constant(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.classes = num_classes
    def forward(self, x):
        return x.mean((1, 2, 3))[:, None].repeat(1, self.classes)

class Lazy(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.layers = nn.Sequential(nn.LazyConv2d(4, 3), nn.Flatten(), nn.LazyLinear(num_classes))
    def forward(self, x):
        return self.layers(x)

number = 3
"""
TOKENS = "mixer_pico_p4_32"


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of the user's, not yet imported, on the path of this process and of its children."""
    name = f"outside_{os.getpid()}_{len(sys.modules)}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv(TRUSTED, "")
    yield name
    sys.modules.pop(name, None)


@pytest.fixture
def mean() -> Iterator[type[nn.Module]]:
    """A mixer without cost, reach or mask."""

    @register_mixer("mean_for_tests")
    class Mean(nn.Module):
        def __init__(self, dim: int) -> None:
            super().__init__()
            self.weight = nn.Linear(dim, dim, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            return self.weight(x.mean(1, keepdim=True)).expand_as(x)

    yield Mean
    del MIXERS["mean_for_tests"]


def test_a_registered_mixer_is_built_counted_and_described(mean: type[nn.Module]) -> None:
    network = create_model(TOKENS, mixer="mean_for_tests")
    assert isinstance(network.blocks[0].mixer, mean)
    assert network(torch.randn(2, 3, 32, 32)).shape == (2, 10)
    assert total_parameters(network.config) == sum(p.numel() for p in network.parameters())
    found = describe(network.config)
    assert found.macs == found.counted_macs and found.fields[-1].side is None


def test_a_mixer_without_mask_is_refused_for_text(mean: type[nn.Module]) -> None:
    with pytest.raises(WeftError, match="mask"):
        create_model("mixer_text_tiny", mixer="mean_for_tests")


@pytest.mark.parametrize("name", ["attention", "mean_for_tests"])
def test_a_name_is_given_once(mean: type[nn.Module], name: str) -> None:
    with pytest.raises(WeftError, match=name):
        register_mixer(name)(nn.Identity)


def test_a_mixer_that_returns_no_tokens_is_refused(outside: str) -> None:
    with pytest.raises(WeftError, match=r"makes \(1, 10\) of \(1, 64, 64\)"):
        create_model(TOKENS, mixer=f"{outside}:Flat")


def test_a_network_that_fails_is_not_described(outside: str) -> None:
    trust(f"{outside}:Fails")
    with pytest.raises(WeftError, match="fails on images"):
        describe(configured(f"{outside}:Fails"))


def test_what_cannot_be_a_mixer_is_refused() -> None:
    with pytest.raises(WeftError, match=r"nn\.Module"):
        register_mixer("some_function")(lambda x: x)  # type: ignore[type-var]
    with pytest.raises(WeftError, match="in_features"):
        register_mixer("some_linear")(nn.Linear)
    with pytest.raises(WeftError, match="name"):
        register_mixer("two words")
    assert "some_function" not in MIXERS and "some_linear" not in MIXERS


def test_an_unknown_mixer_is_answered_with_the_known_ones() -> None:
    with pytest.raises(WeftError, match="no mixer 'atention'; did you mean attention"):
        create_model(TOKENS, mixer="atention")


def test_a_stored_mixer_that_nobody_registered_is_explained(mean: type[nn.Module]) -> None:
    stored = dataclasses.asdict(configured(TOKENS, mixer="mean_for_tests")) | {"mixer": "gone"}
    with pytest.raises(WeftError, match="imported"):
        config_from_dict(stored)


def test_a_mixer_may_be_an_import_string(outside: str) -> None:
    network = create_model(TOKENS, mixer=f"{outside}:Shift")
    assert network(torch.randn(2, 3, 32, 32)).shape == (2, 10)
    assert total_parameters(network.config) == sum(p.numel() for p in network.parameters())
    assert config_from_dict(json.loads(json.dumps(dataclasses.asdict(network.config)))) == network.config


def test_a_network_may_be_an_import_string(outside: str) -> None:
    network = create_model(f"{outside}:Net", num_classes=7, in_chans=1, img_size=8, width=5)
    assert network(torch.randn(2, 1, 8, 8)).shape == (2, 7)
    config = network.config
    assert isinstance(config, ForeignConfig) and config.arguments == {"width": 5}
    assert total_parameters(config) == 5 * 9 + 5 + 5 * 7 + 7
    assert total_macs(config) == 64 * 9 * 5 + 5 * 7
    assert receptive_field(config) == []
    assert describe(config).parameters == total_parameters(config)
    assert config_from_dict(json.loads(json.dumps(dataclasses.asdict(config)))) == config


@pytest.mark.parametrize(
    "name, said",
    [
        ("Missing", "has no Missing"),
        ("number", r"nn\.Module"),
        ("NoClasses", "num_classes"),
        ("Broken", "disk is full"),
        ("Wrong", "batch, classes"),
        ("Fails", "fails on images of 3 × 32 × 32: IndexError"),
        ("Constant", "no parameter"),
    ],
)
def test_a_class_that_does_not_do_is_answered(outside: str, name: str, said: str) -> None:
    with pytest.raises(WeftError, match=said):
        create_model(f"{outside}:{name}")(torch.zeros(1, 3, 32, 32))


def test_lazy_layers_learn_their_sizes_from_the_images_of_the_run(outside: str) -> None:
    network = create_model(f"{outside}:Lazy", num_classes=7, in_chans=1, img_size=8)
    assert network(torch.randn(2, 1, 8, 8)).shape == (2, 7) and network.training
    assert total_parameters(network.config) == 4 * 9 + 4 + 4 * 36 * 7 + 7
    assert total_macs(network.config) == 36 * 9 * 4 + 4 * 36 * 7, "the images that settled the sizes are not counted"


def test_a_module_that_is_not_there_is_answered() -> None:
    with pytest.raises(WeftError, match="PYTHONPATH"):
        create_model("no_such_package.nets:Net")


def test_a_file_runs_no_code_unless_it_is_trusted(outside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = dataclasses.asdict(ForeignConfig(model=f"{outside}:Net"))
    mixed = dataclasses.asdict(configured(TOKENS)) | {"mixer": f"{outside}:Shift"}
    for fields in (stored, mixed):
        with pytest.raises(WeftError, match=TRUSTED):
            config_from_dict(fields)
    with pytest.raises(WeftError, match=TRUSTED):
        configured(f"{outside}:Net")
    with pytest.raises(WeftError, match=TRUSTED):
        build(ForeignConfig(model=f"{outside}:Net"))
    assert outside not in sys.modules
    monkeypatch.setenv(TRUSTED, f"other,{outside}")
    assert build(config_from_dict(stored))(torch.zeros(1, 3, 32, 32)).shape == (1, 10)


def test_what_stands_on_the_command_line_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRUSTED, "")
    trust(["compare", "--models=vit_pico_p4_32,a.b:C", "--network", "mixer=c:D", "--output", "C:\\x", "http://e"])
    assert trusted() == ["a.b", "c"]


def test_an_untrusted_mixer_is_not_imported_by_asking_for_it(outside: str) -> None:
    with pytest.raises(WeftError, match=TRUSTED):
        mixer_class(f"{outside}:Shift")
    assert outside not in sys.modules


@pytest.mark.slow
def test_a_network_from_outside_is_trained_and_resumed(outside: str, tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    done = command("train", "digits", "--model", f"{outside}:Net", "--steps", "2", "--output", run)
    assert done.returncode == 0, done.stderr
    refused = command("eval", run)
    assert refused.returncode == 2 and TRUSTED in refused.stderr
    trusting = {**os.environ, TRUSTED: outside}
    for words in (["eval", run], ["train", "--resume", run]):
        done = command(*words, environment=trusting)
        assert done.returncode == 0, done.stderr
