"""What is saved comes back: the same bits, in every layout, and timm opens its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open

import weft
from oracles import import_timm
from weft.errors import WeftError
from weft.networks.base.network import Network
from weft.networks.registry import build
from weft.networks.weights import load_weights, network_from_folder, save_weights

OWN: dict[str, dict[str, Any]] = {
    "mlp": {"hidden": (8,)},
    "lenet5": {},
    "lenet5_local": {},
    "filternet": {},
    "rcnn_96": {"width": 8},
    "resnet18_cifar": {"widths": (8, 8, 8, 8)},
    "vit_nano_p4_32": {"depth": 1},
    "vit_nano_resnet20_32": {"depth": 1},
    "mixer_nano_p4_32": {"depth": 1},
    "control_random_p4_32": {"depth": 1},
    "amlp_nano_p4_32": {"depth": 1},
    "tmlp2d_nano_p4_32": {"depth": 1},
    "bert_tiny": {"vocab_size": 30},
    "tmlp_text_tiny": {"vocab_size": 30},
    "mixer_text_tiny": {"vocab_size": 30},
    "lstm_text": {"vocab_size": 30},
    "conv_text": {"vocab_size": 30},
}
FOREIGN: list[tuple[str, str, dict[str, Any]]] = [
    ("vit_nano_p4_32", "timm", {}),
    ("vit_nano_p4_32", "huggingface", {"norm_eps": 1e-12}),
    ("mixer_nano_p4_32", "timm", {}),
    ("gmlp_nano_p4_32", "timm", {}),
    ("resnet18", "timm", {}),
    ("bert_tiny", "huggingface", {}),
    ("resnet20_cifar", "cifar", {}),
]


def perturbed(network: Network) -> Network:
    """Every tensor unlike a fresh one, so that what is not loaded is seen."""
    for tensor in network.state_dict().values():
        if tensor.is_floating_point():
            tensor.add_(torch.randn(tensor.shape))
    return network


def assert_same_bits(one: Network, other: Network) -> None:
    state = other.state_dict()
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, state[name]), name


@pytest.mark.parametrize("name", OWN)
def test_a_folder_of_its_own_rebuilds_every_family(name: str, tmp_path: Path) -> None:
    network = perturbed(weft.create_model(name, **OWN[name]))
    save_weights(network, tmp_path / "folder")
    twin = network_from_folder(tmp_path / "folder")
    assert twin.config == network.config
    assert_same_bits(twin, network)


@pytest.mark.parametrize(("name", "layout", "changes"), FOREIGN)
def test_a_file_in_another_layout_comes_back(name: str, layout: Any, changes: dict[str, Any], tmp_path: Path) -> None:
    network, path = perturbed(weft.create_model(name, **changes)), tmp_path / "file.safetensors"
    save_weights(network, path, layout)
    twin = build(network.config)
    load_weights(twin, path)
    assert_same_bits(twin, network)


def test_a_single_file_knows_its_configuration(tmp_path: Path) -> None:
    network = perturbed(weft.create_model("gmlp_nano_p4_32", depth=2, img_size=(16, 24)))
    save_weights(network, tmp_path / "file.safetensors")
    assert network_from_folder(tmp_path / "file.safetensors").config == network.config
    with safe_open(tmp_path / "file.safetensors", framework="pt") as file:
        assert file.metadata()["format"] == "pt"  # transformers refuses files without it


@pytest.mark.parametrize("source", ["owner/name", "hub:owner/name", "hf-hub:owner/name@main"])
def test_a_hub_name_is_fetched_and_loaded(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    network, asked = perturbed(weft.create_model("mixer_nano_p4_32", depth=1)), []
    save_weights(network, tmp_path)
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, **_: asked.append(name) or str(tmp_path))
    assert_same_bits(network_from_folder(source), network)
    assert asked == ["owner/name"]


def test_a_file_may_lie_in_a_new_folder_and_only_safetensors_are_written(tmp_path: Path) -> None:
    network = weft.create_model("mixer_nano_p4_32", depth=1)
    save_weights(network, tmp_path / "new" / "file.safetensors")
    assert_same_bits(network_from_folder(tmp_path / "new" / "file.safetensors"), network)
    for name in ("file.npz", "file.pt"):
        with pytest.raises(WeftError, match=r"weft writes \.safetensors files and folders"):
            save_weights(network, tmp_path / name)
        assert not (tmp_path / name).exists()


def test_a_compiled_network_is_saved_and_loaded_as_it_is(tmp_path: Path) -> None:
    network, path = perturbed(weft.create_model("mixer_nano_p4_32", depth=1)), tmp_path / "file.safetensors"
    save_weights(torch.compile(network), path)  # type: ignore[arg-type]
    twin = weft.create_model("mixer_nano_p4_32", depth=1)
    load_weights(torch.compile(twin), path)  # type: ignore[arg-type]
    assert_same_bits(twin, network)
    load_weights(other := build(network.config), torch.compile(network).state_dict())  # type: ignore[attr-defined]
    assert_same_bits(other, network)


def test_saving_over_a_file_leaves_no_traces(tmp_path: Path) -> None:
    for depth in (2, 1):
        save_weights(weft.create_model("mixer_nano_p4_32", depth=depth), tmp_path / "file.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["file.safetensors"]
    assert network_from_folder(tmp_path / "file.safetensors").config.depth == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "side"), [("gmlp_ti16_224", 64), ("mixer_s32_224", 64), ("vit_tiny_patch16_224", 32), ("resnet18", 64)]
)
def test_timm_opens_a_folder_in_its_layout(name: str, side: int, tmp_path: Path) -> None:
    timm = import_timm()
    network = weft.create_model(name, img_size=side, num_classes=5, in_chans=1).eval()
    torch.nn.init.normal_(network.head.weight, std=0.1)  # type: ignore[arg-type]
    save_weights(network, tmp_path, "timm")
    theirs = timm.create_model(f"local-dir:{tmp_path}", pretrained=True, in_chans=1).eval()
    images = torch.randn(1, 1, side, side)
    torch.testing.assert_close(network(images), theirs(images), rtol=1e-4, atol=1e-5)
    twin = network_from_folder(tmp_path, in_chans=1).eval()
    torch.testing.assert_close(network(images), twin(images))
