"""Cross-validation: what is said of the folds of a repetition is said of all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studies.fabricated import finish_with, make_folds
from weft.report.page import render, whose
from weft.studies.results.answers import balanced_accuracy, figures, judge, macro_f1, occurring
from weft.studies.results.folds import joined
from weft.studies.results.load import collect
from weft.studies.results.summary import summarise
from weft.training.storage.record import read_predictions, write_predictions

UNSURE = {"learnt": False, "remark": "it has not been shown to have learnt anything: 8 validation rows"}
NOTHING = {"learnt": False, "remark": "it has not learnt anything: every answer to the 8 validation rows is 'no'"}


def change(path: Path, **changes: Any) -> None:
    content = json.loads((path / "record.json").read_text())
    (path / "record.json").write_text(json.dumps(content | changes))


def test_whether_a_repetition_learnt_is_judged_by_its_answers_to_all_rows(tmp_path: Path):
    """The validation rows of one fold are few: what they leave open the test rows of all folds may tell."""
    study = make_folds(tmp_path, {"mlp": 0.9, "lenet5": 0.5})
    for job in study.jobs:
        change(study.run_folder(job).path, learnt=UNSURE if job.candidate == "mlp" else {"learnt": True})
    summary = summarise(collect(tmp_path))
    (said,) = summary["guesses"]
    assert said.startswith("lenet5: it has not") and "100 test rows" in said
    assert summary["recommendation"].startswith("Use mlp: the only candidate that is better than a guess")


def test_folds_that_learnt_nothing_are_told(tmp_path: Path):
    study = make_folds(tmp_path, {"mlp": 0.9})
    change(study.run_folder(study.jobs[3]).path, learnt=NOTHING)
    summary = summarise(collect(tmp_path))
    assert summary["guesses"] == []
    assert any("mlp: 1 of 5 folds learnt nothing, the first being 3" in problem for problem in summary["problems"])


def test_figures_are_of_all_rows_and_not_means_over_folds(tmp_path: Path):
    """In every fold but one only one class occurs, so that its balanced accuracy is that of this class."""
    study = make_folds(tmp_path, {"mlp": 0.9}, examples=50)
    for number, job in enumerate(study.jobs):
        rows = np.arange(number, 50, 5)
        target = np.full(10, int(number == 0), np.int32)
        finish_with(study, job, {"predicted": np.zeros(10, np.int32), "target": target, "row": rows})
    change(study.run_folder(study.jobs[0]).path, wall_seconds=7.0)
    (result,) = joined(collect(tmp_path).results)
    assert result.record is not None
    metrics = result.record["metrics"]
    assert (metrics["accuracy"], metrics["balanced_accuracy"]) == (pytest.approx(0.8), pytest.approx(0.5))
    assert metrics["confusion"] == [[40, 0], [10, 0]]
    assert result.record["wall_seconds"] == pytest.approx(7 + 4 * 3)


def test_macro_f1_that_was_asked_for_is_that_of_all_rows_of_the_folds(tmp_path: Path):
    study = make_folds(tmp_path, {"mlp": 0.8}, seeds=2)
    for job in study.jobs:
        path = study.run_folder(job).path
        content = json.loads((path / "record.json").read_text())
        asked = {**content["config"], "objective": {**content["config"]["objective"], "metric": "macro_f1"}}
        change(path, config=asked, metric="macro_f1", metrics={**content["metrics"], "macro_f1": 0.1})
    summary = summarise(collect(tmp_path))
    whole = [result.predictions for result in joined(collect(tmp_path).results)]
    wanted = np.mean([macro_f1(occurring(one)[1]) for one in whole if one is not None])
    (row,) = summary["rows"]
    assert (summary["metric"], row["score"], row["macro_f1"]) == (
        "macro_f1",
        pytest.approx(wanted),
        pytest.approx(wanted),
    )


def test_a_figure_that_a_fold_lacks_is_no_obstacle(tmp_path: Path):
    """AUROC is told only where both classes occur."""
    study = make_folds(tmp_path, {"mlp": 0.9})
    path = study.run_folder(study.jobs[0]).path
    content = json.loads((path / "record.json").read_text())
    change(path, metrics={**content["metrics"], "auroc": 0.75})
    (row,) = summarise(collect(tmp_path))["rows"]
    assert row["score"] is not None


def test_results_that_are_put_together_stay_so(tmp_path: Path):
    make_folds(tmp_path, {"mlp": 0.9}, seeds=2)
    once = joined(collect(tmp_path).results)
    assert joined(once) == once and all(result.finished for result in once)


def test_the_report_speaks_of_all_runs_of_a_repetition(tmp_path: Path):
    study = make_folds(tmp_path, {"mlp": 0.9, "lenet5": 0.8})
    summary = summarise(collect(tmp_path))
    (row, _) = summary["rows"]
    assert len(row["commands"]) == len(set(row["commands"])) == 5
    assert whose(1, 100, 5) == "5 runs, one a fold, 100 answers in all"
    assert whose(3, 300, 5) == "sum of 3 repetitions of 5 runs, 100 answers a repetition"
    page = render(summary)
    assert "5 runs, one a fold, 100 answers in all" in page and "Repetitions</button>" in page
    assert "core time of one repetition, 5 training runs" in page
    path = study.run_folder(study.jobs[1]).path
    content = json.loads((path / "record.json").read_text())
    for event in content["curve"]:
        if event["kind"] == "evaluation":
            event["validation_metric"] = 0.05
    change(path, curve=content["curve"])
    curve = summarise(collect(tmp_path))["curves"]["mlp"]["metric"]
    assert min(curve["low"]) == pytest.approx(0.05), "the curves of all folds are drawn"


def test_one_repetition_claims_no_more_than_its_folds_show(tmp_path: Path):
    """A network that fails in one fold of five is no proof of another family, however many rows that fold has."""
    study = make_folds(tmp_path, {"lenet5": 0.99, "mlp": 0.99}, examples=1000)
    failing = next(job for job in study.jobs if job.candidate == "mlp")
    known = read_predictions(study.run_folder(failing).path)
    finish_with(study, failing, {**known, "predicted": 1 - known["target"]})
    summary = summarise(collect(tmp_path))
    (verdict,) = (one for one in summary["verdicts"] if one["question"] == "convolution")
    assert verdict["p"] > 0.05 and not verdict["shown"]
    (needed,) = summary["settling"]
    assert needed["seeds"] == 1 and "one repetition of a cross-validation" in needed["sentence"]
    assert needed["sentence"].endswith("--seeds 2")


def test_answers_are_judged_without_torch_as_with_it():
    from sklearn.metrics import balanced_accuracy_score, f1_score

    rng = np.random.default_rng(0)
    target, predicted = rng.integers(0, 4, 200), rng.integers(0, 3, 200)
    _, counts = occurring({"target": target, "predicted": predicted})
    assert balanced_accuracy(counts) == pytest.approx(balanced_accuracy_score(target, predicted))
    assert macro_f1(counts) == pytest.approx(f1_score(target, predicted, average="macro", zero_division=0))
    values = rng.normal(size=200)
    guess = {"target": values, "predicted": np.full(200, values.mean()), "confidence": np.ones(200)}
    assert not judge(guess, True).learnt and judge({**guess, "predicted": 0.9 * values}, True).learnt
    assert figures({**guess, "predicted": values + 2}, True) == {"mae": pytest.approx(2), "rmse": pytest.approx(2)}


def test_probabilities_that_tell_two_classes_apart_are_seen_where_one_is_always_answered():
    target = np.arange(100) % 2
    answers = {"target": target, "predicted": np.zeros(100, int), "confidence": 0.9 - 0.3 * target}
    found = judge(answers, False, ["no", "yes"])
    assert found.learnt and "no better than a guess, though" in found.remark and "'no'" in found.remark


def test_folds_of_an_older_version_that_did_not_note_groups_are_put_together_without_them(tmp_path: Path):
    study = make_folds(tmp_path, {"mlp": 0.9})
    path = study.run_folder(study.jobs[0]).path
    found = read_predictions(path)
    write_predictions(path, {**found, "group": found["row"] // 10})
    (result,) = joined(collect(tmp_path).results)
    assert (
        result.predictions is not None and "group" not in result.predictions and len(result.predictions["row"]) == 100
    )
