"""`weft finetune` from the command line: one run, its use afterwards, and bad input as one sentence."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from training.encoders import make_encoder
from training.foreign_starts import google_vit, hugging_face_vit, pictures, torchvision_resnet
from training.runs import sentences
from weft.commands.main import main

SHORT = ["--steps", "4", "--batch-size", "16", "--max-length", "32", "--threads", "1", "--no-compile"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_encoder(tmp_path_factory.mktemp("encoder"))


def weft(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


def test_a_frozen_encoder_from_data_to_prediction(
    encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """M7: fine-tune, evaluate, verify and predict with one encoder that stays in its folder."""
    run = str(tmp_path / "run")
    asked = ["--frozen", "--model", "tmlp_text_tiny", "--network", "dim=16", "--checkpoint-every", "2"]
    assert weft("finetune", str(encoder), str(sentences()), *SHORT, *asked, "--output", run) == 0
    assert "accuracy" in capsys.readouterr().out
    assert weft("train", "--resume", run) == 0
    assert "already finished" in capsys.readouterr().out
    assert weft("eval", run) == 0 and weft("verify", run) == 0
    assert "DIFFERENT" not in capsys.readouterr().out
    assert weft("predict", run, "--text", "ab red cd") == 0
    assert "ab red cd," in capsys.readouterr().out


@pytest.mark.parametrize(
    ("made", "flags", "told"),
    [
        (google_vit, [], "holds the weights of vit_pico_p4_32"),
        (hugging_face_vit, [], ""),
        (torchvision_resnet, ["--unsafe-pickle", "--img-size", "32", "--frozen"], "holds the weights of resnet18"),
    ],
)
def test_images_from_the_weights_of_others(
    made: Callable[[Path], Path], flags: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """From a file or folder of others to a run that predicts, without it."""
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    data, run = pictures(tmp_path / "data"), str(tmp_path / "run")
    (tmp_path / "start").mkdir()
    asked = ["--steps", "2", "--batch-size", "8", "--threads", "1", "--no-compile", "--output", run]
    assert weft("finetune", str(made(tmp_path / "start")), str(data), *asked, *flags) == 0
    said = capsys.readouterr()
    assert "accuracy" in said.out and told in said.out + said.err
    shutil.rmtree(tmp_path / "start")
    assert weft("predict", run, str(data / "dark" / "0.png")) == 0
    assert "dark" in capsys.readouterr().out


def test_a_folder_with_a_pickle_needs_a_flag(encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start, run = shutil.copytree(encoder, tmp_path / "start"), str(tmp_path / "run")
    torch.save(load_file(start / "model.safetensors"), start / "pytorch_model.bin")
    (start / "model.safetensors").unlink()
    asked = ["finetune", str(start), str(sentences()), *SHORT, "--output", run]
    assert weft(*asked) == 2
    assert "add --unsafe-pickle" in capsys.readouterr().err
    assert weft(*asked, "--unsafe-pickle") == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["finetune"], "say what to start from"),
        (["finetune", "nowhere", "digits"], "there is no file or folder"),
        (["finetune", "ENCODER", "digits"], "holds images"),
        (["finetune", "ENCODER", "DATA", "--model", "all"], "add --frozen"),
        (["finetune", "ENCODER", "DATA", "--seeds", "0"], "--seeds"),
        (["finetune", "ENCODER", "DATA", "--layer-decay", "0"], "--layer-decay must be above 0"),
    ],
)
def test_bad_input_is_one_sentence(
    words: list[str], sentence: str, encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    names = {"ENCODER": str(encoder), "DATA": str(sentences())}
    assert weft(*(names.get(word, word) for word in words)) == 2
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1
    assert not list(tmp_path.rglob("run.yaml")), "nothing is left behind"


def test_configuration_is_printed_without_torch(encoder: Path) -> None:
    code = (
        "import sys; from weft.commands.main import dispatch; "
        f"dispatch(['finetune', {str(encoder)!r}, 'sst2', '--frozen', '--print-config']); "
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "frozen: true" in done.stdout and "layer_decay: 0.9" in done.stdout
