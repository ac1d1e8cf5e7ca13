"""Wrong flags and values end in one line that names them and a remedy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from weft.commands.main import main


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("train digits --modle mlp", ("--modle", "--model")),
        ("train digits --model", ("--model", "missing value")),
        ("train digits --model mlp --steps 1e3", ("--steps", "INT", "1e3")),
        ("train digits --model mlp --img-size 0", ("--img-size", "greater than 0")),
        ("train digits --model mlp --precision int4", ("int4", "bf16")),
        ("train digits --model mlp --processes 0", ("--processes 0",)),
        ("data show digits --rows many", ("--rows", "whole number", "many")),
        ("data show digits --val-fraction 1", ("--val-fraction", "less than 1")),
        ("data shwo digits", ("shwo", "'show'")),
        ("predict", ("weft predict", "Run folder")),
        ("train digits --size 8", ("--size", "did you mean --img-size?")),
        ("train digits --accumulate 2", ("did you mean --grad-accum-steps?",)),
        ("train digits --budget 2m", ("did you mean --time?",)),
        ("compare digits --budget 1M", ("did you mean --amount?",)),
        ("study run e4 --budget 2m", ("did you mean --pretrain-time?",)),
        ("tokenizer pydocs --cased --output x", ("did you mean --no-lowercase?",)),
        ("inspect mlp field --out x", ("did you mean --output?",)),
        ("data show digits --memory 5X", ("--memory", "5X", "2G")),
        ("trian", ("trian", "train")),
    ],
)
def test_one_line_names_what_is_wrong(words: str, named: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith("weft: ") and said.count("\n") == 1
    assert all(word in said for word in named), said


def test_an_empty_argument_is_an_unset_variable(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "digits", "--model", "mlp", "--output", ""])
    assert "empty" in capsys.readouterr().err


def test_a_deleted_folder_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(SystemExit) as ended:
        main(["data", "list"])
    assert ended.value.code == 2 and "current folder" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_an_output_that_takes_nothing_is_a_sentence() -> None:
    words = (
        f"{sys.executable} -m weft models > /dev/full; echo $?; {sys.executable} -m weft nothing 2> /dev/full; echo $?"
    )
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True)
    assert done.stdout.split() == ["1", "2"]
    assert done.stderr.startswith("weft: ") and done.stderr.count("\n") == 1
