"""Orderings of E4 and E5: confirmed, contradicted or not shown, from losses that nobody trained; and their page."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from studies.experiments.text_tables.fabricated import make
from weft.errors import WeftError
from weft.studies.experiments.text_tables.drawing import draw_table, print_table, summarise_table
from weft.studies.experiments.text_tables.orderings import judge_orderings
from weft.studies.experiments.text_tables.scores import log_perplexity

AS_PUBLISHED = {"linear": 4.4, "additive": 4.3, "multiplicative": 4.2, "split": 4.1}


def outcomes(folder: Path) -> list[str]:
    return [ordering["outcome"] for ordering in summarise_table(folder)["orderings"]]


def test_e4_the_published_order_is_confirmed_when_it_is_there(tmp_path: Path):
    make(tmp_path, AS_PUBLISHED)
    summary = summarise_table(tmp_path)
    assert outcomes(tmp_path) == ["confirmed"] * 4
    assert summary["conclusion"] == "Of 4 published orderings 4 confirmed, 0 contradicted, 0 not shown."
    assert "linear > additive (published 5.14 > 4.97): confirmed: linear 10.5 %" in summary["orderings"][0]["sentence"]


def test_e4_the_opposite_order_contradicts(tmp_path: Path):
    make(tmp_path, dict(zip(AS_PUBLISHED, reversed(AS_PUBLISHED.values()), strict=True)))
    assert outcomes(tmp_path) == ["contradicted"] * 4


def test_e4_equal_gates_show_nothing(tmp_path: Path):
    make(tmp_path, dict.fromkeys(AS_PUBLISHED, 4.0), noise=0.05)
    assert outcomes(tmp_path) == ["not shown"] * 4


@pytest.mark.parametrize("noise", [0.2, 0.4, 0.6])
def test_e4_an_interval_leaves_zero_out_exactly_where_an_ordering_is_shown(noise: float, tmp_path: Path):
    make(tmp_path, AS_PUBLISHED, seeds=3, noise=noise)
    for ordering in summarise_table(tmp_path)["orderings"]:
        assert (ordering["low"] > 0 or ordering["high"] < 0) == ordering["shown"]


def test_e4_two_seeds_are_called_preliminary(tmp_path: Path):
    make(tmp_path, AS_PUBLISHED, seeds=2, noise=0.001)
    found = summarise_table(tmp_path)["orderings"][0]
    assert found["preliminary"] and "preliminary: 2 seeds" in found["sentence"]


def test_e4_one_seed_shows_nothing_of_the_gates(tmp_path: Path):
    make(tmp_path, AS_PUBLISHED, seeds=1)
    assert outcomes(tmp_path) == ["not shown"] * 4
    assert "one seed, so other seeds are not in the interval" in summarise_table(tmp_path)["orderings"][0]["sentence"]


def test_e4_rows_that_have_not_run_are_named_and_the_others_are_judged(tmp_path: Path):
    make(tmp_path, {name: loss for name, loss in AS_PUBLISHED.items() if name != "linear"}, seeds=3)
    summary = summarise_table(tmp_path)
    assert outcomes(tmp_path) == ["not measured", "confirmed", "confirmed", "not measured"]
    assert "linear, perplexity, seed 0: not run yet" in summary["problems"]


def test_e5_depths_are_judged_within_and_between_the_families(tmp_path: Path):
    make(tmp_path, {"bert-6": 4.3, "bert-12": 4.1, "gmlp-18": 4.4, "gmlp-36": 4.2}, name="e5")
    found = {
        ordering["question"].split(" (")[0]: ordering["outcome"] for ordering in summarise_table(tmp_path)["orderings"]
    }
    assert found == {
        "perplexity, bert-6 > bert-12": "confirmed",
        "perplexity, gmlp-18 > gmlp-36": "confirmed",
        "perplexity, bert-6 < gmlp-18": "confirmed",
        "perplexity, bert-12 < gmlp-36": "confirmed",
    }


def test_perplexity_is_that_of_all_tokens_and_sequences_share_its_variance():
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 20, 500)
    losses = rng.gamma(2.0, 2.0, 500) * counts
    scores = log_perplexity(losses, counts)
    assert math.isclose(scores.mean(), losses.sum() / counts.sum())
    again = [
        losses[rows].sum() / counts[rows].sum() for rows in (rng.integers(0, 500, 500) for _ in range(2000))
    ]  # bootstrap
    assert scores.std(ddof=1) / math.sqrt(500) == pytest.approx(np.std(again), rel=0.1)


def test_an_ordering_without_published_figures_is_a_difference_or_none():
    rng = np.random.default_rng(0)
    good, bad = (rng.random((5, 400)) < 0.9) * 1.0, (rng.random((5, 400)) < 0.6) * 1.0
    (found,) = judge_orderings({"sst2": {"a": good, "b": bad}}, {}, [("a", "b")], ["sst2"])
    assert (
        "a against b (not in the table): a difference is shown: a 28.8" in found.sentence and "points" in found.sentence
    )


def test_a_table_is_drawn_with_published_figures_time_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    make(tmp_path, AS_PUBLISHED, seeds=3)
    print_table(draw_table(tmp_path))
    printed = capsys.readouterr().out
    assert "5.14" in printed and "81.38" in printed and "confirmed" in printed  # about exp 4.4
    assert "were predicted to take 2 min and took 2.2 min (+10 %)" in printed
    page = (tmp_path / "report.html").read_text()
    assert "Table 6 on" in page and page.count("<svg") >= 6 and "http" not in page.replace("http://www.w3.org", "")


def test_a_folder_without_an_experiment_is_answered_with_a_sentence(tmp_path: Path):
    with pytest.raises(WeftError, match="holds no experiment yet"):
        summarise_table(tmp_path)
