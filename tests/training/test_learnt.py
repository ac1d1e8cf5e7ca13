"""A network that has learnt nothing is called so, and one that has is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import matthews_corrcoef

from training.runs import configure, train
from weft.commands.running import tell
from weft.training.learnt import judge_answers, judge_confusion, judge_numbers, judge_words, never_answered, remark
from weft.training.metrics import classification
from weft.training.run.lifecycle import Outcome

ACCEPTABLE = ["unacceptable", "acceptable"]


def acceptability(rows: int = 1000, share: float = 0.69) -> torch.Tensor:
    return torch.from_numpy((np.arange(rows) < share * rows).astype(np.float32))


def logits(targets: torch.Tensor, signal: float, bias: float) -> torch.Tensor:
    """What a network might say of two classes: noise, what it knows of the targets, and a leaning."""
    noise = torch.randn(len(targets), 1, generator=torch.Generator().manual_seed(0))
    return noise + signal * (targets[:, None] - 0.5) + bias


@pytest.mark.parametrize(("signal", "bias", "learnt"), [(0.0, 9.0, False), (0.0, 0.5, False), (2.0, 0.5, True)])
def test_two_unequal_classes(signal: float, bias: float, learnt: bool) -> None:
    """Naming the commoner class has an accuracy of 69 % and knows nothing."""
    targets = acceptability()
    found = judge_answers("binary", logits(targets, signal, bias), targets, ACCEPTABLE, 0.0)
    assert found.learnt is learnt and (found.remark == "") is learnt
    if bias == 9.0:
        assert found.remark == "it has not learnt anything: every answer to the 1,000 validation rows is 'acceptable'"


def test_probabilities_may_know_more_than_answers() -> None:
    """An AUROC far above one half is no chance, whatever the threshold makes of it; the answers are named."""
    targets = acceptability()
    found = judge_answers("binary", logits(targets, 0.7, 9.0), targets, ACCEPTABLE, 0.0)
    assert found.learnt and found.measure == "auroc" and found.value == pytest.approx(0.7, abs=0.05)
    assert "answers are no better than a guess" in found.remark and "every answer" in found.remark


def test_answers_that_are_all_right_are_not_called_a_guess() -> None:
    """Six rows leave the correlation of the answers uncertain; the probabilities settle it."""
    targets = torch.tensor([0.0, 0, 0, 1, 1, 1])
    found = judge_answers("binary", 8 * targets[:, None] - 4, targets, ACCEPTABLE, 0.0)
    assert found.learnt and found.measure == "auroc" and found.remark == ""


@pytest.mark.parametrize("seed", range(5))
def test_the_correlation_is_scikit_learn_s_and_its_interval_holds_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, 5, 400)
    said = np.where(rng.random(400) < 0.3, targets, rng.integers(0, 5, 400))
    counts = np.bincount(targets * 5 + said, minlength=25).reshape(5, 5)
    found = judge_confusion(counts)
    assert found.value == pytest.approx(matthews_corrcoef(targets, said))
    assert found.low < found.value < found.high and found.learnt
    metrics = classification(torch.eye(5)[said], torch.from_numpy(targets), 5)
    assert metrics["matthews"] == pytest.approx(found.value)


def test_few_rows_leave_it_open() -> None:
    found = judge_confusion([[6, 4], [4, 6]], ["a", "b"], "validation rows")
    assert not found.learnt and found.remark.startswith("it has not been shown to have learnt anything: a Matthews")


def test_luck_is_seldom_taken_for_knowledge() -> None:
    rng = np.random.default_rng(0)
    taken = [judge_confusion(rng.multinomial(200, [0.35, 0.15, 0.35, 0.15]).reshape(2, 2)).learnt for _ in range(200)]
    assert sum(taken) <= 12, "2.5 % on average"


@pytest.mark.parametrize(("error", "learnt"), [(0.0, True), (0.9, True), (1.0, False), (1.5, False)])
def test_numbers_are_judged_against_their_mean(error: float, learnt: bool) -> None:
    rng = np.random.default_rng(0)
    wanted = 100 + rng.standard_normal(500)
    predicted = wanted - error * rng.permutation(wanted - 100) if error != 1.0 else np.full(500, 100.0)
    found = judge_numbers(predicted, wanted, 100.0, "validation rows")
    assert found.learnt is learnt
    assert learnt or "where the mean alone explains 0 %" in found.remark


def test_words_are_judged_against_their_frequency() -> None:
    assert judge_words(300, (250, 360), 540, 10_000).learnt
    found = judge_words(3586, (3000, 4100), 540, 10_000)
    assert found.remark.startswith("it has not learnt anything: a perplexity of 3,586") and "540" in found.remark
    assert judge_words(500, (450, 560), 540, 100).remark.startswith("it has not been shown")


def test_classes_that_are_never_answered_are_named() -> None:
    assert never_answered([[5, 0, 0], [3, 0, 0], [0, 0, 0]], ["corn", "grain", "wheat"]) == ["grain"]


def test_a_run_says_in_words_that_it_learnt_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its record too; a run of the same length with a usual rate is not called so."""
    records: dict[float, Any] = {}
    for rate in (1e-12, 5e-3):
        config = configure("mlp", steps=60, lr=rate, eval_every=60)
        records[rate] = train(config, tmp_path / str(rate))
        tell(Outcome(tmp_path / str(rate), records[rate]))
    none, some = records[1e-12], records[5e-3]
    assert not none["beats_constant_guess"] and some["beats_constant_guess"]
    assert some["learnt"]["measure"] == "matthews" and some["learnt"]["low"] > 0 and remark(some) is None
    said = capsys.readouterr().out
    assert said.count("learnt anything") == 1 and str(remark(none)) in said
    assert none["metrics"]["never_answered"] and "never answered, though they occur in the test split: " in said
