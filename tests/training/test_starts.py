"""What fine-tuning and probing start from: how files and folders of others are told, and what is said of them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from training.encoders import configure, make_encoder
from training.foreign_starts import MEAN, STD, google_vit, hugging_face_vit, torchvision_resnet
from weft.data.transform.transforms import ImageTransform
from weft.errors import WeftError
from weft.networks.base.encoder import folder_digest
from weft.networks.config import CARRIED
from weft.networks.registry import build, create_model
from weft.networks.weights import network_from_folder, save_weights
from weft.networks.weights.files import INDEX, Checkpoint, read
from weft.networks.weights.recognise import recognised_config
from weft.networks.weights.save import foreign_tensors
from weft.training.embeddings.carried import carry
from weft.training.finetuning import start as starts
from weft.training.finetuning.prepare import open_finetuning
from weft.training.finetuning.start import Start, read_start
from weft.training.inference import network_folder
from weft.training.inference.network_folder import NetworkMetadata, write_network


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def lite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A timm folder of an EfficientNet that pads as TensorFlow does, whose tensors are those of the plain one."""
    folder = tmp_path_factory.mktemp("lite")
    save_weights(create_model("tf_efficientnet_lite0", num_classes=7), folder, layout="timm")
    return folder


@pytest.fixture
def timm_vit(tmp_path: Path) -> Path:
    """A timm folder of images of 48 px, by a name that weft has not."""
    folder = tmp_path / "timm"
    folder.mkdir()
    save_weights(create_model("vit_pico_p4_32", img_size=48), folder / "model.safetensors", layout="timm")
    colours = {"input_size": [3, 48, 48], "mean": MEAN, "std": STD}
    config = {"architecture": "vit_pico_patch4_48.in1k", "pretrained_cfg": colours}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def fills(start: Start) -> bool:
    """Whether the weights go into the network that was told, with another head."""
    network = built(start)
    start.fill(network)
    return all(bool(tensor.isfinite().all()) for tensor in network.state_dict().values())


def built(start: Start) -> Any:
    return build(start.network.replaced(num_classes=3))


# ---- the Hub


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of repositories, of which files are fetched by the patterns that are asked for."""
    library = pytest.importorskip("huggingface_hub")
    from huggingface_hub.utils import filter_repo_objects

    def fetch(name: str, revision: str | None, allow_patterns: list[str]) -> str:
        there = [path.relative_to(tmp_path / name).as_posix() for path in (tmp_path / name).rglob("*")]
        for file in filter_repo_objects(there, allow_patterns=allow_patterns):
            target = tmp_path / "fetched" / name / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(tmp_path / name / file, target)
        return str(tmp_path / "fetched" / name)

    monkeypatch.setattr(library, "snapshot_download", fetch)
    return tmp_path


def test_an_encoder_of_the_hub_comes_with_tokenizer_pooling_and_card(encoder: Path, hub: Path) -> None:
    there = Path(shutil.copytree(encoder, hub / "owner" / "bert"))
    (there / "1_Pooling").mkdir()
    (there / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    (there / "README.md").write_text("---\ndatasets: [snli]\n---\n")
    torch.save({}, there / "pytorch_model.bin")
    start = read_start("hub:owner/bert")
    assert start.transform.tokenizer.content() == read_start(str(encoder)).transform.tokenizer.content()
    assert start.network.pool == "mean" and "snli" in (start.seen("pair") or "")
    assert not (start.folder / "pytorch_model.bin").exists()


def test_an_image_network_of_the_hub_comes_with_its_colours(hub: Path) -> None:
    (hub / "owner" / "vit").mkdir(parents=True)
    hugging_face_vit(hub / "owner" / "vit")
    start = read_start("hub:owner/vit")
    assert start.transform == ImageTransform(32, 3, tuple(MEAN), tuple(STD)) and not start.notes
    (hub / "google" / "vit").mkdir(parents=True)
    google_vit(hub / "google" / "vit")
    assert fills(read_start("hub:google/vit"))


def test_a_folder_of_one_npz_is_read_and_of_several_is_not(tmp_path: Path) -> None:
    path = google_vit(tmp_path)
    first = read_start(str(tmp_path))
    assert first.network == read_start(str(path)).network and first.digest == read_start(str(path)).digest
    shutil.copy(path, tmp_path / "other.npz")
    with pytest.raises(WeftError, match="holds no weights"):
        read_start(str(tmp_path))


# ---- which network


def test_weights_of_google_and_torchvision_are_told_and_loaded(tmp_path: Path) -> None:
    start = read_start(str(google_vit(tmp_path)))
    assert (start.network.act, start.network.heads, start.network.num_classes) == ("gelu_tanh", 2, 7)
    assert any("vit_pico_p4_32" in note for note in start.notes) and fills(start)
    start = read_start(str(torchvision_resnet(tmp_path)), pickled=True)
    assert start.notes[0] == "resnet18.pth holds the weights of resnet18, by the names and shapes of its tensors"
    assert fills(start)


def test_weights_that_fit_several_networks_name_them(lite: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(lite / "model.safetensors", tmp_path / "lite0.safetensors"))
    start = read_start(str(path))
    assert start.network.padding == "both"
    assert "of efficientnet_lite0, by" in start.notes[0]
    assert start.notes[0].endswith("; it fits tf_efficientnet_lite0 as well (--model)")
    chosen = read_start(str(path), "tf_efficientnet_lite0")
    assert chosen.network.padding == "same" and not any("fits" in note for note in chosen.notes) and fills(chosen)


@pytest.mark.parametrize("name", ["", "model.safetensors"])
def test_a_name_in_a_config_json_decides(name: str, lite: Path) -> None:
    start = read_start(str(lite / name))
    assert start.network.padding == "same" and not any("fits" in note for note in start.notes) and fills(start)
    assert recognised_config(read(lite / name)).name == "tf_efficientnet_lite0"
    with pytest.raises(WeftError, match="says itself which network it holds; leave out --model efficientnet_lite0"):
        read_start(str(lite / name), "efficientnet_lite0")


@pytest.mark.parametrize("name", ["", "model.safetensors"])
def test_a_timm_folder_of_another_name_is_told_by_its_tensors(name: str, timm_vit: Path) -> None:
    start = read_start(str(timm_vit / name))
    assert start.network.img_size == (48, 48) and len(start.notes) == 1 and "of vit_pico_p4_32, by" in start.notes[0]
    assert start.transform == ImageTransform(48, 3, tuple(MEAN), tuple(STD)) and fills(start)
    assert read_start(str(timm_vit / name), "vit_pico_p4_32").notes == ()
    with pytest.raises(WeftError, match="is not of vit_nano_p4_32"):
        read_start(str(timm_vit / name), "vit_nano_p4_32")
    with pytest.raises(WeftError, match="names vit_pico_patch4_48, which weft has not; use create_model with"):
        network_from_folder(timm_vit)


@pytest.mark.parametrize("stored", ['"x"', '{"input_size": 3}', '{"input_size": [3, "a", "b"]}'])
def test_a_damaged_description_is_one_sentence(stored: str, timm_vit: Path) -> None:
    for name in ("vit_pico_patch4_48", "vit_base_patch16_224"):
        (timm_vit / "config.json").write_text(f'{{"architecture": "{name}", "pretrained_cfg": {stored}}}')
        with pytest.raises(WeftError):
            read_start(str(timm_vit))


@pytest.mark.parametrize(
    ("shape", "nearest"),
    [({"dim": 256, "heads": 4}, "vit_tiny_patch16_224"), ({"dim": 4, "heads": 1}, "vit_pico_p4_32")],
)
def test_a_known_layout_that_fits_nothing_names_the_nearest(shape: dict[str, int], nearest: str) -> None:
    with torch.device("meta"):
        network = create_model("vit_tiny_patch16_224", **shape)
    with pytest.raises(WeftError, match=f"fits no network of weft; the nearest is {nearest}: .* and .* more differ"):
        recognised_config(Checkpoint(foreign_tensors(network, "timm"), origin="own.safetensors"))


# ---- colours


def test_colours_beside_a_file_belong_to_it(tmp_path: Path) -> None:
    """Of others and of weft itself; a file of another name stands alone."""
    (tmp_path / "vit").mkdir()
    folder = hugging_face_vit(tmp_path / "vit")
    start = read_start(str(folder / "model.safetensors"))
    assert start.transform == read_start(str(folder)).transform and start.transform.mean == tuple(MEAN)
    assert not start.notes and fills(start)
    network = create_model("vit_pico_p4_32", num_classes=2)
    card, transform = NetworkMetadata("vit", "classes", ["a", "b"]), ImageTransform(32, 3, tuple(MEAN), tuple(STD))
    (tmp_path / "run").mkdir()
    write_network(tmp_path / "run", card, network.config, dict(network.state_dict()), transform)
    assert read_start(str(tmp_path / "run" / "model.safetensors")).transform == transform
    save_weights(network, folder / "own.safetensors")
    assert read_start(str(folder / "own.safetensors")).transform.mean == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"image_mean": ["x", 0, 0]}, "mean.0"),
        ({"image_std": [0, 0, 0]}, "std.0"),
        ({"image_mean": [0.5] * 4}, "4 means and 3 deviations for 3 inputs"),
        ({"image_std": [float("nan"), 1, 1]}, "std.0"),
    ],
)
def test_colours_that_are_none_are_one_sentence(changes: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    stated = {"image_mean": MEAN, "image_std": STD, **changes}
    (hugging_face_vit(tmp_path) / "preprocessor_config.json").write_text(json.dumps(stated))
    with pytest.raises(WeftError, match=f"preprocessor_config.json.*{sentence}"):
        read_start(str(tmp_path))


# ---- names that pip brings


def test_a_first_use_that_was_killed_blocks_no_later_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Brought:
        digest, mean, std = "0" * 64, tuple(MEAN), tuple(STD)

        def path(self) -> Path:
            return tmp_path / "weights.pth"

    def killed(path: Path, content: bytes) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(starts, "package_of", lambda name: Brought())
    monkeypatch.setattr(starts, "create_model", lambda name, pretrained: create_model("vit_pico_p4_32"))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(network_folder, "write_bytes", killed)  # configuration and colours are there, weights are not
        read_start("efficientnet_lite0")
    assert list((tmp_path / "cache").rglob("config.json"))
    assert read_start("efficientnet_lite0").transform.mean == tuple(MEAN)


# ---- shards and pickles


def in_shards(folder: Path, prefix: str) -> list[Path]:
    """The weights of a folder in two files with an index."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    parts = {f"{prefix}-1.safetensors": names[::2], f"{prefix}-2.safetensors": names[1::2]}
    for file, part in parts.items():
        save_file({name: tensors[name] for name in part}, folder / file)
    where = {name: file for file, part in parts.items() for name in part}
    (folder / INDEX).write_text(json.dumps({"weight_map": where}))
    return [folder / file for file in parts]


@pytest.mark.parametrize("described", [True, False])
@pytest.mark.parametrize("prefix", ["model", "part"])
def test_other_numbers_in_a_shard_are_another_digest(described: bool, prefix: str, tmp_path: Path) -> None:
    save_weights(create_model("vit_pico_p4_32"), tmp_path, layout="huggingface")
    shards = in_shards(tmp_path, prefix)
    if not described:
        (tmp_path / "config.json").unlink()
    before = read_start(str(tmp_path)).digest
    tensors = load_file(shards[1])
    save_file({name: tensor + 1 for name, tensor in tensors.items()}, shards[1])
    start = read_start(str(tmp_path))
    assert start.digest != before and fills(start)


def test_shards_of_any_name_are_carried_along(encoder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(encoder, tmp_path / "encoder"))
    in_shards(folder, "part")
    (tmp_path / "run").mkdir()
    carry(folder, tmp_path / "run")
    assert folder_digest(tmp_path / "run" / CARRIED) == folder_digest(folder)
    assert read_start(str(tmp_path / "run" / CARRIED)).network == read_start(str(folder)).network


@pytest.fixture
def pickled(encoder: Path, tmp_path: Path) -> Path:
    """An encoder whose weights are a pickle alone."""
    folder = Path(shutil.copytree(encoder, tmp_path / "pickled"))
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


def test_a_folder_with_a_pickle_is_opened_with_leave(encoder: Path, pickled: Path) -> None:
    with pytest.raises(WeftError, match=r"in pytorch_model\.bin alone, a pickle, .*, or add --unsafe-pickle"):
        read_start(str(pickled))
    start, plain = read_start(str(pickled), pickled=True), read_start(str(encoder))
    filled, expected = built(start), built(plain)
    start.fill(filled)
    plain.fill(expected)
    assert torch.equal(filled.blocks[1].mixer.qkv.weight, expected.blocks[1].mixer.qkv.weight)
    before = start.digest
    torch.save({}, pickled / "pytorch_model.bin")
    assert replace(start).digest != before, "the pickle counts"


def test_a_bare_folder_with_a_pickle_is_told_by_its_tensors(tmp_path: Path) -> None:
    torchvision_resnet(tmp_path).rename(tmp_path / "pytorch_model.bin")
    assert read_start(str(tmp_path), pickled=True).network.family == "resnet"
    with pytest.raises(WeftError, match="--unsafe-pickle"):
        read_start(str(tmp_path))


def test_a_frozen_encoder_of_text_is_no_pickle(pickled: Path) -> None:
    """What stands on it opens it again wherever it is used."""
    config = configure(pickled, steps=2, frozen=True, model="tmlp_text_tiny", unsafe_pickle=True)
    with pytest.raises(WeftError, match=r"convert it to model\.safetensors, or leave out --frozen"):
        open_finetuning(config).batches("train")


def test_bare_weights_of_grey_images_are_recognised(tmp_path: Path) -> None:
    grey = create_model("mixer_pico_p4_32", in_chans=1)
    save_file(grey.state_dict(), tmp_path / "grey.safetensors")
    start = read_start(str(tmp_path / "grey.safetensors"))
    assert start.network.in_chans == 1 and fills(start)  # type: ignore[attr-defined]


def test_large_weights_are_told_apart_by_all_that_they_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.data.read import cache

    monkeypatch.setattr(cache, "WHOLE", 1 << 10)
    first, second = (tmp_path / name for name in ("first.safetensors", "second.safetensors"))
    for path in (first, second):
        values = torch.zeros(1 << 19)
        values[len(values) // 2] = float(path is first)
        save_file({"x": values}, path)
    assert starts.weights_digest(first) != starts.weights_digest(second)
