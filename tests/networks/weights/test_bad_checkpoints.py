"""Bad checkpoints: each ends in one sentence, and the network stays as it was."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor

import weft
from weft.errors import WeftError
from weft.networks.base.network import Network
from weft.networks.weights import load_weights, network_from_folder, save_weights

State = dict[str, Tensor]


def small(**changes: Any) -> Network:
    return weft.create_model("mixer_nano_p4_32", **{"depth": 2, "dim": 8, "hidden_dim": 16, "img_size": 8, **changes})


def refuses(network: Network, source: Any, sentence: str, **options: Any) -> None:
    """Loading fails with one line that says so, and changes nothing."""
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    with pytest.raises(WeftError, match=sentence) as caught:
        load_weights(network, source, **options)
    assert "\n" not in str(caught.value)
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save_weights(small(), tmp_path / "good.safetensors")
    return tmp_path / "good.safetensors"


def lose_a_tensor(state: State) -> None:
    del state["blocks.1.norm2.weight"]


def add_a_tensor(state: State) -> None:
    state["blocks.2.norm2.weight"] = torch.zeros(8)


def change_a_shape(state: State) -> None:
    state["norm.weight"] = torch.zeros(9)


def lose_an_axis(state: State) -> None:
    state["blocks.0.mixer.fc1.weight"] = torch.zeros(64)


def lose_half_a_head(state: State) -> None:
    del state["head.bias"]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lose_a_tensor, r"lacks blocks\.1\.norm2\.weight.*nothing was loaded"),
        (add_a_tensor, r"has blocks\.2\.norm2\.weight.*no place"),
        (change_a_shape, r"norm\.weight \(9,\) where the network has \(8,\)"),
        (lose_an_axis, r"fc1\.weight \(64,\) where the network has"),
        (lose_half_a_head, r"half a head: it lacks head\.bias"),
    ],
)
def test_nothing_is_loaded_in_part(damage: Callable[[State], None], sentence: str) -> None:
    state = dict(small().state_dict())
    damage(state)
    refuses(small(), state, sentence)


def test_many_names_are_cut_short() -> None:
    refuses(small(), small(depth=12).state_dict(), r"blocks\.2\.norm1\.weight.* and \d+ more")


def test_what_is_no_real_tensor_is_refused(file: Path) -> None:
    network, state = small(), small().state_dict()
    refuses(network, {**state, "norm.weight": [1.0] * 8}, "something else than tensors")
    refuses(network, {**state, "norm.weight": torch.ones(8, dtype=torch.int8)}, r"norm.weight in torch.int8 where")


def test_a_relative_of_bert_with_the_same_tensors_is_refused(tmp_path: Path) -> None:
    """RoBERTa counts its positions from two, so that equal shapes would give other results."""
    changes = {"vocab_size": 9, "max_length": 6, "dim": 8, "depth": 1, "heads": 2, "hidden_dim": 8, "num_classes": 0}
    network = weft.create_model("bert_tiny", **changes)  # type: ignore[arg-type]
    save_weights(network, tmp_path, "huggingface")
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "model_type": "roberta"}))
    refuses(network, tmp_path, "is a 'roberta'; of Hugging Face's models weft reads bert and vit")
    with pytest.raises(WeftError, match="is a 'roberta'"):
        network_from_folder(tmp_path)


def test_a_network_without_memory_is_refused(file: Path) -> None:
    with torch.device("meta"):
        network = small()
    with pytest.raises(WeftError, match="on the meta device has no memory to load weights into"):
        load_weights(network, file)


def test_a_truncated_file_is_refused(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])
    refuses(small(), file, "truncated")


@pytest.mark.parametrize("name", ["x.safetensors", "x.npz"])
@pytest.mark.parametrize("content", [b"", b"<html>not found</html>", bytes(1000)])
def test_an_alien_file_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    refuses(small(), tmp_path / name, "truncated or no")


def test_objects_in_an_npz_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", stem=np.array([{}], dtype=object))
    refuses(small(), tmp_path / "x.npz", "no .npz file of plain arrays")


def test_an_unknown_layout_and_an_unknown_kind_of_file_are_refused(tmp_path: Path) -> None:
    save_file({"layers.0.wq": torch.zeros(2)}, tmp_path / "llama.safetensors")
    refuses(small(), tmp_path / "llama.safetensors", r"in no layout that weft knows.*layers\.0\.wq")
    (tmp_path / "weights.h5").touch()
    refuses(small(), tmp_path / "weights.h5", "no file of weights that weft knows")


def test_the_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    vit = weft.create_model("vit_nano_p4_32", depth=1)
    save_weights(vit, tmp_path / "vit.safetensors", "timm")
    refuses(small(), tmp_path / "vit.safetensors", "holds a timm ViT")
    save_weights(vit, tmp_path / "own.safetensors")
    refuses(small(), tmp_path / "own.safetensors", "was made with family='vit'")


@pytest.mark.parametrize("change", [{"act": "relu"}, {"norm_eps": 1e-5}])
def test_own_weights_with_another_setting_are_refused(file: Path, change: dict[str, Any]) -> None:
    refuses(small(**change), file, f"{next(iter(change))}=")


def test_an_unusual_setting_is_doubted_where_a_file_does_not_tell(tmp_path: Path) -> None:
    """In timm ViT, Mixer and gMLP compute GELU by erf, and a bare file does not say so."""
    save_weights(small(), tmp_path / "timm.safetensors", "timm")
    with pytest.warns(UserWarning, match="have act='gelu', the network has 'gelu_tanh'"):
        load_weights(small(act="gelu_tanh"), tmp_path / "timm.safetensors")


def test_another_patch_side_is_refused_by_name(file: Path) -> None:
    refuses(small(patch_size=2, img_size=4), file, "made with patch_size=4")


def test_a_pickle_needs_a_word_and_never_runs_code(tmp_path: Path) -> None:
    network, path = small(), tmp_path / "weights.pth"
    torch.save({"state_dict": {f"module.{name}": tensor for name, tensor in network.state_dict().items()}}, path)
    refuses(small(), path, "unsafe_pickle=True")
    twin = small()
    load_weights(twin, path, unsafe_pickle=True)
    assert all(torch.equal(tensor, network.state_dict()[name]) for name, tensor in twin.state_dict().items())

    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "sprung",))

    torch.save({"state_dict": Trap()}, path)
    refuses(small(), path, "cannot be read as weights alone", unsafe_pickle=True)
    assert not (tmp_path / "sprung").exists()


def test_a_head_stays_fresh_only_where_the_classes_differ(file: Path) -> None:
    network = small(num_classes=3)
    head = {name: tensor.clone() for name, tensor in network.head.state_dict().items()}
    with pytest.warns(UserWarning, match="10 classes and the network 3: its head starts fresh"):
        load_weights(network, file)
    assert all(torch.equal(tensor, head[name]) for name, tensor in network.head.state_dict().items())
    with pytest.warns(UserWarning, match="the network none: the head is left out"):
        load_weights(small(num_classes=0), file)


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    refuses(small(), tmp_path / "none.safetensors", "there is no file or folder")
    refuses(small(), tmp_path, "holds no model.safetensors")


def test_the_hub_out_of_reach_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    refuses(small(), "hub:weft/no-such-network", "the Hub did not give it")


def test_a_hub_name_without_the_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    refuses(small(), "google/mixer-b16", r"install weft\[hub\]")


@pytest.mark.parametrize("config", ["{", "[]", '{"model_type": "gpt2"}', '{"family": "mixer", "depth": -1}'])
def test_a_damaged_config_is_a_sentence(file: Path, tmp_path: Path, config: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    file.rename(folder / "model.safetensors")
    (folder / "config.json").write_text(config)
    with pytest.raises(WeftError):
        network_from_folder(folder)


def test_a_hugging_face_config_that_lacks_a_size_is_a_sentence(tmp_path: Path) -> None:
    network = weft.create_model("bert_tiny", vocab_size=20)
    save_weights(network, tmp_path, "huggingface")
    fields = json.loads((tmp_path / "config.json").read_text())
    del fields["hidden_size"]
    (tmp_path / "config.json").write_text(json.dumps(fields))
    told = []
    for load in (network_from_folder, lambda folder: load_weights(network, folder)):
        with pytest.raises(WeftError, match="lacks 'hidden_size'") as refused:
            load(tmp_path)
        told.append(str(refused.value))
    assert told[0] == told[1], "one sentence for one trouble"


def test_a_layout_without_a_place_for_the_network_says_so(tmp_path: Path) -> None:
    toeplitz = weft.create_model("tmlp_nano_p4_32", depth=1)
    with pytest.raises(WeftError, match="no place for a gmlp network"):
        save_weights(toeplitz, tmp_path / "x.safetensors", "timm")
    with pytest.raises(WeftError, match="timm has no name for a network of this shape"):
        save_weights(small(), tmp_path / "folder", "timm")
    with pytest.raises(WeftError, match=re.escape("there is no layout 'keras'")):
        save_weights(small(), tmp_path / "x.safetensors", "keras")  # type: ignore[arg-type]


fraction = st.floats(0, 1, exclude_max=True)
hit = st.tuples(fraction, st.integers(0, 255))  # where, and the byte to put there


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from(["safetensors", "npz"]), hits=st.lists(hit), cut=fraction)
def test_damaged_bytes_end_in_a_sentence_or_in_numbers(
    tmp_path: Path, kind: str, hits: list[tuple[float, int]], cut: float
) -> None:
    """A changed number goes unseen (only a checksum would tell); a changed name, shape or length does not."""
    network, path = small(dim=2, hidden_dim=2, token_dim=2, depth=1), tmp_path / f"damaged.{kind}"
    if kind == "npz":
        np.savez_compressed(path, **{name: tensor.numpy() for name, tensor in network.state_dict().items()})
    else:
        path.unlink(missing_ok=True)  # a damaged one is not known to be weft's, and would be left alone
        save_weights(network, path)
    content = bytearray(path.read_bytes())
    for place, value in hits:
        content[int(place * len(content))] = value
    path.write_bytes(content[: -int(cut * len(content))] if cut > 0.5 else content)
    with contextlib.suppress(WeftError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load_weights(network, path)
