"""`weft finetune` from the command line: one run, its use afterwards, and bad input as one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from training.encoders import make_encoder
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
