"""`weft export` on trained runs: files that predict, int8 with its loss, folders for other libraries, the cache."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import weft
from training.runs import configure, sentences, train
from weft.commands.main import dispatch
from weft.data.read.cache import Cache
from weft.errors import WeftError, WorkFailed
from weft.export import engine

pytest.importorskip("onnxruntime", reason="no onnxruntime: pip install 'weft[onnx]'")
pytest.importorskip("onnxscript", reason="no onnxscript: pip install 'weft[onnx]'")

QUESTIONS = ["a red thing", "some blue one", "green"]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "text"
    train(configure("text", steps=60, lr=0.01), folder)
    return folder


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "digits"
    train(configure("resnet", steps=40), folder)
    return folder


def export(capsys: pytest.CaptureFixture[str], *words: Any) -> dict[str, Any]:
    assert dispatch(["export", *map(str, words), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def predictions(capsys: pytest.CaptureFixture[str], place: Any) -> list[Any]:
    words = [word for said in QUESTIONS for word in ("--text", said)]
    assert dispatch(["predict", str(place), *words, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_predictions_of_the_file_are_those_of_the_run(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "new" / "text.onnx"
    found = export(capsys, text, "--onnx", "--output", file)
    assert found["difference"] < 1e-4 and found["speed"]["ratio"] > 0 and found["size"] == file.stat().st_size
    shutil.copy(file, tmp_path / "alone.onnx")
    own, others = predictions(capsys, text), predictions(capsys, tmp_path / "alone.onnx")
    assert [one["input"] for one in own] == [one["input"] for one in others]
    for one, other in zip(own, others, strict=True):
        for mine, theirs in zip(one["predictions"], other["predictions"], strict=True):
            assert mine["class"] == theirs["class"] and mine["probability"] == pytest.approx(
                theirs["probability"], abs=1e-5
            )


def test_eight_bits_come_with_their_loss_on_the_test_split(
    digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = export(capsys, digits, "--onnx", "--output", tmp_path / "whole.onnx")
    found = export(capsys, digits, "--onnx", "--int8")
    assert (digits / "model-int8.onnx").is_file() and whole["loss"] is None
    recorded = json.loads((digits / "record.json").read_text())["metrics"]["accuracy"]
    assert found["loss"]["metric"] == "accuracy" and found["loss"]["before"] == recorded
    assert abs(found["loss"]["after"] - recorded) < 0.1 and "digits" in found["loss"]["rows"]
    assert found["difference"] > whole["difference"]


def test_eight_bits_without_the_source_say_that_the_loss_is_not_known(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(text, moved)
    asked = (moved / "run.yaml").read_text()
    (moved / "run.yaml").write_text(asked.replace(str(sentences()), str(tmp_path / "gone.csv")))
    found = export(capsys, moved, "--onnx", "--int8")
    assert found["loss"] is None and "not known" in found["note"] and "gone.csv" in found["note"]
    classes = [one["predictions"][0]["class"] for one in predictions(capsys, moved / "model-int8.onnx")]
    assert classes == [one["predictions"][0]["class"] for one in predictions(capsys, text)]


def test_what_makes_no_sense_is_one_sentence(text: Path, tmp_path: Path) -> None:
    for words, said in {
        (str(text),): "say what to write",
        (str(text), "--onnx", "--hub"): "say what to write",
        (str(text), "--hub", "--int8"): "--int8 is for .onnx files",
        (str(tmp_path), "--onnx"): "holds no trained network",
        (str(tmp_path / "nowhere"), "--onnx"): "is not a folder",
    }.items():
        with pytest.raises(WeftError, match=said):
            dispatch(["export", *words])
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_weights_is_refused(text: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(text, run)
    (run / "model.safetensors").unlink()
    with pytest.raises(WeftError, match="cannot read the weights"):
        dispatch(["export", str(run), "--onnx"])
    assert not (run / "model.onnx").exists()


def test_an_engine_is_made_once_and_anew_for_other_weights(
    digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    asked = np.random.default_rng(0).integers(0, 256, (4, 1, 8, 8), dtype=np.uint8)
    own = weft.load(digits).outputs(asked)
    torch.testing.assert_close(engine.onnx_predictor(digits).outputs(asked), own, rtol=1e-4, atol=1e-4)
    assert len(Cache().entries()) == 1
    with monkeypatch.context() as without:
        without.setattr(engine, "exported", None)  # the second time comes from the cache
        torch.testing.assert_close(engine.onnx_predictor(digits).outputs(asked), own, rtol=1e-4, atol=1e-4)
    other = tmp_path / "other"
    weft.load(digits).save_pretrained(other)
    before = engine.cache_key(other)
    (other / "model.safetensors").write_bytes((other / "model.safetensors").read_bytes() + b" ")
    assert engine.cache_key(other) != before


def test_an_engine_that_cannot_be_made_says_why(digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    run = tmp_path / "run"
    shutil.copytree(digits, run)
    (run / "preprocessor_config.json").write_text("{")
    with pytest.raises(WorkFailed, match=r"run could not be exported: .*preprocessor_config.json is damaged"):
        engine.onnx_predictor(run)
    assert Cache().entries() == []
