"""A run is a folder that can be copied to another machine and used there, without anything else of the first one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import weft
from training.encoders import configure, make_encoder
from training.runs import configure as supervised
from training.runs import sentences, train
from weft.commands.main import dispatch
from weft.errors import WeftError
from weft.networks.base.encoder import folder_digest
from weft.training.embeddings import carried
from weft.training.inference.evaluate import evaluate_run
from weft.training.loop import loop
from weft.training.loop.display import Silent
from weft.training.run import lifecycle

TEXTS = ["ab red cd", "blue", "green ab"]


@pytest.fixture(autouse=True)
def new_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on another machine: no embedding is known."""
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a network was trained on a frozen encoder: `run` on the source `sentences.csv`."""
    place = tmp_path_factory.mktemp("machine")
    make_encoder(place / "bert")
    shutil.copy(sentences(), place / "sentences.csv")
    network = {"dim": 16, "depth": 1, "hidden_dim": 32}
    config = configure(
        place / "bert", steps=8, source=place / "sentences.csv", frozen=True, model="gmlp_text_tiny", network=network
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEFT_CACHE", str(place / "cache"))
        train(config, place / "run")
    return place


@pytest.fixture
def moved(machine: Path, tmp_path: Path) -> Iterator[Path]:
    """The run alone, on a machine that has nothing else."""
    shutil.copytree(machine / "run", tmp_path / "moved")
    hidden = machine.with_name("elsewhere")
    machine.rename(hidden)
    yield tmp_path / "moved"
    hidden.rename(machine)


def test_a_run_on_a_frozen_encoder_is_used_where_nothing_else_is(machine: Path, moved: Path, tmp_path: Path) -> None:
    answers = weft.load(moved).predict_proba(TEXTS)
    assert answers.shape == (3, 3)
    elsewhere = machine.with_name("elsewhere")
    metrics = evaluate_run(moved, str(elsewhere / "sentences.csv"), batch_size=32)
    assert metrics["accuracy"] > 0.2
    weft.load(moved).save_pretrained(tmp_path / "copy")
    shutil.rmtree(moved)
    assert (weft.load(tmp_path / "copy").predict_proba(TEXTS) == answers).all()


def test_an_encoder_that_is_not_there_is_asked_for_by_its_digest(machine: Path, moved: Path, tmp_path: Path) -> None:
    bert, other = machine.with_name("elsewhere") / "bert", tmp_path / "other"
    answers = weft.load(moved).predict_proba(TEXTS)
    shutil.rmtree(moved / "encoder")
    with pytest.raises(WeftError, match=f"--encoder|{folder_digest(bert)}"):
        weft.load(moved).predict(TEXTS)
    assert (weft.load(moved, bert).predict_proba(TEXTS) == answers).all()
    words = [str(moved), "--encoder"]
    assert dispatch(["predict", *words, str(bert), "--text", "red"]) == 0
    shutil.copytree(bert, other)
    (other / "config.json").write_text((other / "config.json").read_text() + "\n")
    for folder in (other, tmp_path / "nowhere"):
        with pytest.raises(WeftError, match=folder.name):
            dispatch(["predict", *words, str(folder), "--text", "red"])
    looked = ["inspect", str(moved), "mistakes", "--source", str(machine.with_name("elsewhere") / "sentences.csv")]
    assert dispatch([*looked, "--output", str(tmp_path / "seen"), "--encoder", str(bert)]) == 0
    with pytest.raises(WeftError, match="leave out --encoder"):
        dispatch(["inspect", "mlp", "field", "--encoder", str(bert)])


def test_a_source_that_is_not_there_is_asked_for(moved: Path) -> None:
    with pytest.raises(WeftError, match=rf"sentences\.csv, which is not here.*weft eval {moved} SOURCE"):
        evaluate_run(moved)


def test_a_stopped_run_goes_on_where_its_source_lies_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one on a frozen encoder, which it carries from the start; data that have changed are refused."""
    make_encoder(tmp_path / "bert")
    before, after, other = (tmp_path / name / "rows.csv" for name in ("before", "after", "other"))
    for path in (before, after, other):
        path.parent.mkdir()
    shutil.copy(sentences(), before)
    asked = {"frozen": True, "model": "gmlp_text_tiny", "network": {"dim": 16, "depth": 1, "hidden_dim": 32}}
    config = configure(tmp_path / "bert", steps=14, source=before, **asked)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "stalled", lambda run, progress: progress.step >= 7)
        patch.setattr(lifecycle, "finish", lambda *_: None)
        lifecycle.start(config, tmp_path / "run", Silent())
    before.rename(after)
    shutil.rmtree(tmp_path / "bert")
    resuming = ["finetune", "--resume", str(tmp_path / "run")]
    with pytest.raises(WeftError, match="before"):
        dispatch(resuming)
    other.write_text("\n".join(after.read_text().splitlines()[:-90]) + "\n")
    with pytest.raises(WeftError, match=r"other.*has changed"):
        dispatch([*resuming, "bert", str(other)])
    assert dispatch([*resuming, "bert", str(after)]) == 0


def test_an_encoder_is_linked_where_it_can_be_and_else_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_encoder(tmp_path / "bert")
    (tmp_path / "bert" / "predictions.safetensors").write_bytes(b"of a run")
    (tmp_path / "run").mkdir()
    (tmp_path / "far").mkdir()
    carried.carry(tmp_path / "bert", tmp_path / "run")
    carried.carry(tmp_path / "bert", tmp_path / "run")
    assert (tmp_path / "run" / "encoder" / "model.safetensors").samefile(tmp_path / "bert" / "model.safetensors")

    def refuse(*_: object) -> None:
        raise OSError("another disk")

    monkeypatch.setattr(os, "link", refuse)
    carried.carry(tmp_path / "bert", tmp_path / "far")
    copy = tmp_path / "far" / "encoder"
    assert not (copy / "model.safetensors").samefile(tmp_path / "bert" / "model.safetensors")
    assert folder_digest(copy) == folder_digest(tmp_path / "bert")
    assert {path.name for path in copy.iterdir()} == {
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"
    }  # fmt: skip


def test_only_networks_on_an_encoder_take_one(tmp_path: Path) -> None:
    train(supervised("mlp", steps=2), tmp_path / "run")
    with pytest.raises(WeftError, match="stands on no encoder"):
        weft.load(tmp_path / "run", tmp_path)
