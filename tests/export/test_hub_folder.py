"""Folders for the Hub are opened by timm and transformers as they are, and give the same logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from networks.small import shaken
from oracles import import_timm, import_transformers
from weft.data.transform.tokenizer import train_tokenizer
from weft.data.transform.transforms import ImageTransform, TextTransform, Transform
from weft.errors import WeftError
from weft.export.hub_folder import write_hub_folder
from weft.networks.registry import create_model
from weft.training.inference.network_folder import NetworkMetadata
from weft.training.inference.predictor import Predictor

PICTURES = ImageTransform(32, 3, (0.4, 0.5, 0.6), (0.2, 0.3, 0.25))
THREE = {"task": "classes", "classes": ["cat", "dog", "eel"]}
TWO = {"task": "binary", "classes": ["no", "yes"]}
NUMBER = {"task": "regression", "classes": [], "centre": 7.0, "scale": 3.0}


def written(folder: Path, name: str, transform: Transform, card: dict[str, Any], **changes: Any) -> Predictor:
    """A network with random weights as the folder of a run has it."""
    torch.manual_seed(0)
    network = shaken(create_model(name, num_classes=3 if card is THREE else 1, **changes)).eval()
    made = Predictor(NetworkMetadata(name, **card), network, transform)
    made.save_pretrained(folder)
    return made


def images() -> Tensor:
    return torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("name", "changes"), [("mixer_s32_224", {"depth": 8}), ("resnet18", {}), ("efficientnet_lite0", {})]
)
def test_timm_opens_what_it_has_under_a_name(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    timm = import_timm()
    made = written(tmp_path / "run", name, PICTURES, THREE, img_size=32, **changes)
    found = write_hub_folder(tmp_path / "run", tmp_path / "hub")
    theirs = timm.create_model(f"local-dir:{tmp_path / 'hub'}", pretrained=True).eval()
    assert found.library == "timm" and "local-dir:" in found.call
    with torch.no_grad():
        x = images().double()  # answers of drawn weights are large, and so is their rounding
        torch.testing.assert_close(theirs.double()(x), made.network.double()(x), rtol=1e-6, atol=1e-6)
    config = timm.data.resolve_data_config({}, model=theirs)
    assert [*config["input_size"], *config["mean"], config["interpolation"]] == [3, 32, 32, 0.4, 0.5, 0.6, "bilinear"]
    assert theirs.pretrained_cfg["label_names"] == THREE["classes"]


@pytest.mark.parametrize("card", [THREE, TWO, NUMBER], ids=["classes", "binary", "regression"])
def test_transformers_opens_every_vit_and_its_outputs_mean_what_they_say(card: dict[str, Any], tmp_path: Path) -> None:
    transformers = import_transformers()
    shape = {"img_size": 32, "dim": 16, "depth": 2, "heads": 2, "hidden_dim": 24}
    made = written(tmp_path / "run", "vit_nano_p4_32", PICTURES, card, **shape)
    found = write_hub_folder(tmp_path / "run", tmp_path / "hub")
    assert found.library == "transformers"
    theirs = transformers.ViTForImageClassification.from_pretrained(tmp_path / "hub").eval()
    with torch.no_grad():
        logits, own = theirs(images()).logits, made.card.objective().answers(made.network(images()))
    if card is TWO:
        torch.testing.assert_close(logits.softmax(1)[:, 1:], own.sigmoid(), rtol=1e-4, atol=1e-4)
    else:
        torch.testing.assert_close(logits, own.float(), rtol=1e-4, atol=1e-4)
    assert [theirs.config.id2label[number] for number in range(len(card["classes"]))] == card["classes"]


def test_transformers_reads_texts_as_weft_does(tmp_path: Path) -> None:
    transformers = import_transformers()
    texts = ["a red thing and more", "blue", "some green ones"]
    tokenizer = train_tokenizer(texts * 5, 60)
    shape = {"dim": 16, "depth": 1, "heads": 2, "hidden_dim": 24, "max_length": 12, "vocab_size": tokenizer.vocab_size}
    made = written(tmp_path / "run", "bert_tiny", TextTransform(tokenizer, 12), THREE, **shape)
    write_hub_folder(tmp_path / "run", tmp_path / "hub")
    network = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "hub").eval()
    read = transformers.AutoTokenizer.from_pretrained(tmp_path / "hub")
    with torch.no_grad():
        logits = network(**read(texts, padding=True, truncation=True, max_length=12, return_tensors="pt")).logits
    torch.testing.assert_close(logits, made.outputs(texts).float(), rtol=1e-4, atol=1e-4)


def test_a_network_that_neither_has_is_refused_with_the_way_out(tmp_path: Path) -> None:
    written(tmp_path / "run", "lenet5", ImageTransform(32, 1, (0.5,), (0.5,)), THREE)
    with pytest.raises(WeftError, match=r"neither library has this network.*--onnx") as refused:
        write_hub_folder(tmp_path / "run", tmp_path / "hub")
    assert str(refused.value).count(";") == 1, "the remedies of the layouts are no way out here"
    assert not (tmp_path / "hub").exists()


def test_files_of_others_stay_as_they_are(tmp_path: Path) -> None:
    written(tmp_path / "run", "vit_pico_p4_32", PICTURES, THREE, depth=1)
    for name in ("config.json", "preprocessor_config.json"):
        folder = tmp_path / f"with {name}"
        folder.mkdir()
        (folder / name).write_text("mine")
        with pytest.raises(WeftError, match="weft did not write it"):
            write_hub_folder(tmp_path / "run", folder)
        assert [path.read_text() for path in folder.iterdir()] == ["mine"]
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(WeftError):
        write_hub_folder(tmp_path / "run", tmp_path / "taken")


def test_a_run_is_not_overwritten_by_its_own_export(tmp_path: Path) -> None:
    written(tmp_path / "run", "vit_pico_p4_32", PICTURES, THREE, depth=1)
    with pytest.raises(WeftError, match="holds a run"):
        write_hub_folder(tmp_path / "run", tmp_path / "run")
