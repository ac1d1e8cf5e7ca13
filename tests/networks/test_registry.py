"""Names, patterns, keywords, and the way back from a stored configuration."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import weft
from networks.small import SMALL
from weft.networks import listing
from weft.networks.registry import FAMILIES, REGISTRY, build, config_from_dict, configured, create_model, list_models


def test_every_family_of_the_source_documents_has_a_name() -> None:
    """All but foreign ones, which have import strings."""
    assert {config.family for config in REGISTRY.values()} == set(FAMILIES) - {"foreign"}
    for name in (
        *("mlp", "lenet5_local", "lenet_slide", "lenet5", "filternet", "rcnn_96", "rcnn_128", "rcnn_160"),
        *(f"resnet{depth}" for depth in (18, 34, 50, 101, 152)),
        *(f"resnet{depth}_cifar" for depth in (18, 20, 32, 44, 56, 110)),
        *("vit_tiny_patch16_224", "vit_small_patch16_224", "vit_base_patch16_224", "vit_large_patch16_224"),
        *("vit_huge_patch14_224", "vit_small_resnet18_224"),
        *(f"mixer_{size}_224" for size in ("s32", "s16", "b32", "b16", "l32", "l16", "h14")),
        *(f"{kind}_{size}16_224" for kind in ("gmlp", "tmlp", "tmlp2d", "amlp") for size in ("ti", "s", "b")),
        *(f"{kind}_text_tiny" for kind in ("gmlp", "tmlp", "amlp", "mixer")),
        *(f"bert_{size}" for size in ("tiny", "mini", "small", "medium", "base", "large")),
        *("lstm_text", "conv_text", "mixer_small_p4_32", "mixer_nano_p4_32"),
    ):
        assert name in REGISTRY


def test_small_networks_of_the_tests_cover_every_family() -> None:
    assert {REGISTRY[name].family for name in SMALL} == set(FAMILIES) - {"filternet", "foreign"}


def test_patterns_select_names() -> None:
    """`weft.list_models(pattern)` as timm's users know it."""
    assert list_models() == list(REGISTRY) == weft.list_models("*")
    assert list_models("mixer_?16_224") == ["mixer_s16_224", "mixer_b16_224", "mixer_l16_224"]
    assert list_models("mixer_b16_224") == ["mixer_b16_224"]
    assert list_models("nothing*") == []
    assert all(name.startswith("gmlp") for name in list_models("gmlp*")) and len(list_models("gmlp*")) > 5


def test_keywords_that_timms_users_know() -> None:
    """num_classes, img_size (a side or a pair), in_chans; 0 classes for features."""
    network = weft.create_model("vit_nano_p4_32", num_classes=7, img_size=16, in_chans=1, depth=1)
    assert network(torch.zeros(2, 1, 16, 16)).shape == (2, 7)
    assert network.config.img_size == (16, 16)
    wide = weft.create_model("mixer_nano_p4_32", img_size=(8, 16), num_classes=0, depth=1)
    assert wide(torch.zeros(2, 3, 8, 16)).shape == (2, 128)


def test_every_setting_can_be_changed() -> None:
    """Any size by configuration: overrides reach the network, and the named size stays as it was."""
    before = dataclasses.asdict(REGISTRY["gmlp_nano_p4_32"])
    network = create_model("gmlp_nano_p4_32", dim=24, depth=3, hidden_dim=32, gate="additive", act="relu")
    assert (len(network.blocks), network.blocks[0].fc1.weight.shape, network.blocks[0].gate.form) == (
        3,
        (32, 24),
        "additive",
    )
    assert dataclasses.asdict(REGISTRY["gmlp_nano_p4_32"]) == before


@pytest.mark.parametrize("name", REGISTRY)
def test_a_configuration_comes_back_from_json(name: str) -> None:
    """`config.json` is enough to build the network again."""
    stored = json.loads(json.dumps(dataclasses.asdict(REGISTRY[name])))
    assert config_from_dict(stored) == REGISTRY[name]


@pytest.mark.parametrize("name", SMALL)
def test_a_rebuilt_network_takes_the_old_weights(name: str) -> None:
    config = configured(name, **SMALL[name])
    first, second = build(config), build(config_from_dict(dataclasses.asdict(config)))
    second.load_state_dict(first.state_dict(), strict=True)
    assert type(first) is type(second) and first.config == second.config


def test_the_seed_decides_how_a_network_starts() -> None:
    states = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        states.append(create_model("mixer_nano_p4_32", depth=1).blocks[0].mixer.fc1.weight)
    assert torch.equal(states[0], states[1]) and not torch.equal(states[0], states[2])


LISTED = (
    "import sys, weft; names = weft.list_models('mixer*'); "
    "from weft.networks.registry import configured; config = configured('bert_tiny', depth=3); "
    "print(len(names), config.depth, 'torch' in sys.modules)"
)


def listed(cache: Path) -> str:
    environment = {**os.environ, "WEFT_CACHE": str(cache)}
    done = subprocess.run([sys.executable, "-c", LISTED], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.strip()


def test_names_and_settings_are_known_without_torch(tmp_path: Path) -> None:
    """Listings stay fast: the family files are imported once, and then only when they change or a network is built."""
    count = len(list_models("mixer*"))
    assert listed(tmp_path / "cache") == f"{count} 3 True"
    assert listed(tmp_path / "cache") == f"{count} 3 False"


@pytest.mark.parametrize("content", ["", "[]", '{"key": 1}', "\x00"])
def test_a_damaged_listing_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    """Once: collecting takes seconds, so what it found before stands for what it would find again."""
    whole, collected = listing.listing(), []
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path))
    monkeypatch.setattr(listing, "collected", lambda: collected.append(content) or whole)
    listing.store(whole)
    listing.cache_file().write_text(content)
    for _ in range(2):
        assert listing.listing.__wrapped__() == whole and collected == [content]


def test_what_is_listed_is_what_the_family_files_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path))
    found = listing.collected()
    listing.store(found)
    assert listing.restored(json.loads(listing.cache_file().read_text())) == found == listing.listing()


def test_listings_need_no_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert listed(tmp_path / "file").endswith("True")
