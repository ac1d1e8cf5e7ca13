"""`weft pretrain` and `weft tokenizer` (A4) as a user meets them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from data.corpus import texts
from weft.commands.main import dispatch
from weft.data.transform.tokenizer import Tokenizer
from weft.errors import WeftError

QUICK = [
    "--model", "gmlp_text_tiny", "--network", "dim=16", "depth=1", "hidden_dim=32", "--vocab-size", "100",
    "--max-length", "24", "--batch-size", "8", "--threads", "1", "--steps", "4",
]  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return texts.write(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "pretrained"
    assert dispatch(["pretrain", str(corpus), *QUICK, "--output", str(folder)]) == 0
    return folder


def test_any_verb_resumes_and_lists_a_pre_training_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("pretrain", "train"):
        assert dispatch([verb, "--resume", str(run)]) == 0
        said = capsys.readouterr().out
        assert "already finished: perplexity" in said
        assert "learnt anything: a perplexity of" in said and "guessing by frequency has" in said, "of four steps"
    assert dispatch(["runs", str(run), "--json"]) == 0
    assert "perplexity" in capsys.readouterr().out
    assert dispatch(["eval", str(run)]) == 0
    assert "masked_accuracy" in capsys.readouterr().out


def test_the_folder_holds_the_encoder_its_heads_and_its_tokenizer(run: Path) -> None:
    names = {path.name for path in run.iterdir()}
    assert {"run.yaml", "config.json", "model.safetensors", "heads.safetensors", "tokenizer.json"} <= names


def test_another_verb_s_configuration_is_sent_where_it_belongs(run: Path) -> None:
    with pytest.raises(WeftError, match="kind pretrain: weft pretrain --config"):
        dispatch(["train", "--config", str(run / "run.yaml")])
    with pytest.raises(WeftError, match="started with another configuration"):
        dispatch(["pretrain", "--resume", str(run), "--whole-words"])


def test_the_configuration_is_printed_and_helped_with_without_torch(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["pretrain", "pydocs", "--model", "bert_mini", "--next-sentence", "--print-config"]) == 0
    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown["masking"]["next_sentence"] and shown["transform"]["vocab_size"] == 30_000
    for verb in ("pretrain", "tokenizer"):
        code = f"import sys, weft.commands.{verb}\nassert 'torch' not in sys.modules"
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_tokenizer_is_trained_and_used(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "words"
    assert dispatch(["tokenizer", str(corpus), "--vocab-size", "90", "--no-lowercase", "--output", str(folder)]) == 0
    assert "pieces a word, 0.00% unknown" in capsys.readouterr().out
    tokenizer, from_words = Tokenizer.load(folder)[0], Tokenizer.load(folder / "vocab.txt")[0]
    assert tokenizer.words() == from_words.words()
    assert tokenizer.pieces(["The cat"]) == from_words.pieces(["The cat"])
    words = ["pretrain", str(corpus), *QUICK, "--tokenizer", str(folder), "--output", str(tmp_path / "run")]
    assert dispatch(words) == 0
    assert Tokenizer.load(tmp_path / "run")[0].content() == tokenizer.content()
    with pytest.raises(WeftError, match="exists and is not empty"):
        dispatch(["tokenizer", str(corpus), "--output", str(folder)])


def test_bad_input_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("A single sentence.")
    with pytest.raises(WeftError, match="holds one sentence"):
        dispatch(["pretrain", str(tmp_path / "one.txt"), *QUICK, "--output", str(tmp_path / "run")])
    with pytest.raises(WeftError, match="there is no source"):
        dispatch(["tokenizer", str(tmp_path / "nowhere"), "--output", str(tmp_path / "out")])
    with pytest.raises(WeftError, match="--vocab-size must be at least 64"):
        dispatch(["tokenizer", "pydocs", "--vocab-size", "3", "--output", str(tmp_path / "out")])
    with pytest.raises(WeftError, match="holds images, not text"):
        dispatch(["tokenizer", "digits", "--output", str(tmp_path / "out")])
