"""Pre-training as a run (A4, M4): it learns, is resumed to the bit, shared by processes, evaluated; bad input."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import weft
from data.corpus import texts
from training.runs import Stop, assert_close, assert_same_bits, curve, last_checkpoint, train_together
from weft.data.corpus.config import CorpusConfig, TokenizingConfig
from weft.errors import WeftError
from weft.training.config import DurationConfig, ExecutionConfig, OptimisationConfig
from weft.training.inference.evaluate import evaluate_run
from weft.training.inference.verify import verify
from weft.training.loop.display import Silent
from weft.training.pretraining.config import MaskingConfig, PretrainConfig
from weft.training.pretraining.prepare import PretrainInputs
from weft.training.run import lifecycle, probe
from weft.training.run.inputs import open_inputs
from weft.training.storage.run_folder import open_run

SMALL: dict[str, Any] = {"dim": 16, "depth": 2, "hidden_dim": 32}


def configure(corpus: Path, steps: int = 12, model: str = "gmlp_text_tiny", **changes: Any) -> PretrainConfig:
    config = PretrainConfig(
        source=str(corpus),
        model=model,
        network={**SMALL, "drop_rate": 0.1, **({"heads": 2} if "bert" in model else {})},
        reading=CorpusConfig(val_fraction=0.1, test_fraction=0.1),
        transform=TokenizingConfig(vocab_size=100, max_length=24),
        optimisation=OptimisationConfig(batch_size=8, lr=3e-3),
        duration=DurationConfig(steps=steps),
        execution=ExecutionConfig(threads=1, log_every=2, checkpoint_every=4, eval_every=3),
    )
    return replace(config, **changes)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return texts.write(tmp_path_factory.mktemp("corpus"))


def finished(config: PretrainConfig, folder: Path) -> dict[str, Any]:
    record = lifecycle.start(config, folder, Silent()).record
    assert record is not None
    return record


def test_smoke_from_a_text_file_to_a_better_perplexity_than_word_frequencies(corpus: Path, tmp_path: Path) -> None:
    """End to end: train, report, evaluate again, verify, and load the encoder."""
    record = finished(configure(corpus, steps=200, network=SMALL), tmp_path / "run")
    metrics = record["metrics"]
    assert record["kind"] == "pretrain" and record["metric"] == "perplexity"
    assert metrics["perplexity"] < metrics["frequency_perplexity"]
    low, high = metrics["perplexity_interval"]
    assert low < metrics["perplexity"] < high
    assert metrics["perplexity"] == pytest.approx(math.exp(metrics["loss"]))
    again = evaluate_run(tmp_path / "run", batch_size=8)
    assert {name: again[name] for name in metrics} == metrics
    assert all(finding.same for finding in verify(tmp_path / "run", steps=4))
    stored = json.loads((tmp_path / "run" / "config.json").read_text())["weft"]
    assert stored["network"]["num_classes"] == 0
    with pytest.raises(WeftError, match="knows no classes; use `weft finetune`"):
        weft.load(tmp_path / "run").predict(["the cat"])


def test_next_sentences_beside_masked_words_and_alone(corpus: Path, tmp_path: Path) -> None:
    both = configure(corpus, model="bert_tiny", masking=MaskingConfig(next_sentence=True, whole_words=True))
    metrics = finished(both, tmp_path / "both")["metrics"]
    assert {"perplexity", "masked_accuracy", "next_sentence_accuracy"} <= metrics.keys()
    alone = finished(replace(both, masking=MaskingConfig(mask_fraction=0, next_sentence=True)), tmp_path / "alone")
    assert alone["metric"] == "next_sentence_accuracy" and "perplexity" not in alone["metrics"]


def test_a_killed_run_is_resumed_to_the_bit(corpus: Path, tmp_path: Path) -> None:
    config = configure(corpus, masking=MaskingConfig(next_sentence=True), model="bert_tiny")
    finished(config, tmp_path / "whole")
    stopped = lifecycle.start(config, tmp_path / "cut", Stop(8))
    assert stopped.record is None
    lifecycle.resume(tmp_path / "cut", Silent())
    assert_same_bits(last_checkpoint(tmp_path / "whole"), last_checkpoint(tmp_path / "cut"))


def test_the_last_judging_is_part_of_a_time(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To judge takes 7 s, and 7 s more to measure: both are planned for, and both were done once before."""
    now, ends = [1000.0], []

    def slow(method: Any) -> Any:
        def timed(*arguments: Any, **more: Any) -> Any:
            now[0] += 7.0
            return method(*arguments, **more)

        return timed

    def scheduled(*arguments: Any) -> Any:
        ends.append(60.0 - (now[0] - 1000.0) - arguments[-1])  # what is kept for the end
        return schedule(*arguments)

    schedule = probe.schedule
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(probe, "schedule", scheduled)
    monkeypatch.setattr(probe, "mean_step", lambda *_, **__: 0.1)
    for name in ("judge", "measure"):
        monkeypatch.setattr(PretrainInputs, name, slow(getattr(PretrainInputs, name)))
    config = configure(corpus, duration=DurationConfig(time="60s"))
    lifecycle.start(config, tmp_path / "run", Silent(), began=1000.0, until=1)
    assert now[0] == 1000.0 + 4 * 7 and ends == [pytest.approx(14.0 + probe.LEAVING)]


def test_micro_batches_change_nothing_but_rounding(corpus: Path, tmp_path: Path) -> None:
    """Masked words differ in number from one micro-batch to the next: all are divided by the number of the batch."""
    whole = configure(corpus, steps=6, transform=TokenizingConfig(vocab_size=100, max_length=24, pack=False))
    finished(whole, tmp_path / "whole")
    parts = replace(whole, optimisation=replace(whole.optimisation, grad_accum_steps=3))
    finished(parts, tmp_path / "parts")
    assert_close(tmp_path / "whole", tmp_path / "parts")


def test_two_processes_equal_one(corpus: Path, tmp_path: Path) -> None:
    """Pairs of many lengths, both tasks, dropout, and a batch that two ranks cannot share evenly."""
    config = configure(corpus, model="bert_tiny", masking=MaskingConfig(next_sentence=True))
    config = replace(config, optimisation=replace(config.optimisation, batch_size=7, grad_accum_steps=2))
    finished(config, tmp_path / "one")
    train_together(config, tmp_path / "two")
    assert_close(tmp_path / "one", tmp_path / "two")


def test_the_kind_is_kept_and_the_configuration_comes_back(corpus: Path, tmp_path: Path) -> None:
    config = configure(corpus, steps=4)
    finished(config, tmp_path / "run")
    assert "kind: pretrain" in (tmp_path / "run" / "run.yaml").read_text()
    assert open_run(tmp_path / "run").config() == config
    assert [event["kind"] for event in curve(tmp_path / "run")].count("evaluation") >= 1


def test_another_tokenizer_on_resuming_is_refused(corpus: Path, tmp_path: Path) -> None:
    config = configure(corpus)
    assert lifecycle.start(config, tmp_path / "run", Stop(6)).record is None
    other = open_inputs(replace(config, transform=TokenizingConfig(vocab_size=100, max_length=24, lowercase=False)))
    other.save_transform(tmp_path / "run")
    with pytest.raises(WeftError, match=r"tokenizer\.json of the run is not the one"):
        lifecycle.resume(tmp_path / "run", Silent())


def test_a_changed_corpus_on_resuming_is_refused(tmp_path: Path) -> None:
    path = texts.write(tmp_path)
    assert lifecycle.start(configure(path), tmp_path / "run", Stop(6)).record is None
    path.write_text(path.read_text() + "\n\nOne more. Indeed.\n")
    with pytest.raises(WeftError, match="has changed since the run began"):
        lifecycle.resume(tmp_path / "run", Silent())


def test_runs_of_several_seeds_are_asked_the_same_held_out_words(corpus: Path) -> None:
    pair = [open_inputs(configure(corpus, seed=seed)).batches("test")[0].inputs["answers"] for seed in (0, 1)]
    assert torch.equal(*pair)


def test_bert_s_own_vocabulary_is_read_and_kept_in_the_folder(corpus: Path, tmp_path: Path) -> None:
    words = texts.tokenizer().words()
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    given = TokenizingConfig(tokenizer=str(tmp_path / "vocab.txt"), max_length=24)
    finished(configure(corpus, steps=2, transform=given), tmp_path / "run")
    kept = open_inputs(configure(corpus, transform=given), tmp_path / "run").transform  # type: ignore[attr-defined]
    assert kept.tokenizer.words() == words


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"source": ""}, "say what to read"),
        ({"model": ""}, "say which network"),
        ({"model": "lstm_text", "network": {}}, "lstm_text is no token network on text; pre-train one that"),
        ({"model": "mixer_b_16", "network": {}}, "no token network|no model"),
        ({"optimisation": OptimisationConfig(batch_size=100_000)}, "a batch of 100000 is larger than the"),
        ({"network": {"vocab_size": 64}}, "has room for 64 words"),
        ({"transform": TokenizingConfig(tokenizer="nowhere")}, "nowhere"),
    ],
)
def test_bad_input_is_a_sentence(changes: dict[str, Any], sentence: str, corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(WeftError, match=sentence):
        lifecycle.start(configure(corpus, **changes), tmp_path / "run", Silent())
    assert not (tmp_path / "run").exists()


def test_masking_that_cannot_be_is_refused() -> None:
    with pytest.raises(WeftError, match="nothing is left to learn"):
        MaskingConfig(mask_fraction=0)
    with pytest.raises(WeftError, match="add up to at most 1"):
        MaskingConfig(mask_hidden=0.9, mask_random=0.2)


def test_the_last_checkpoint_holds_heads_and_encoder(corpus: Path, tmp_path: Path) -> None:
    finished(configure(corpus, steps=4), tmp_path / "run")
    names = last_checkpoint(tmp_path / "run").tensors
    assert {"model.heads.bias", "model.encoder.embed.words.weight"} <= names.keys()
