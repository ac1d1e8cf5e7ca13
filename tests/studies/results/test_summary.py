"""What is drawn from records: whole ones, half-written ones, alien ones, and runs that failed."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from studies.fabricated import make_study, record
from weft.disk import Damaged
from weft.errors import WeftError
from weft.report.table import as_csv, as_json, cell_table, show
from weft.studies.engine.study import Study
from weft.studies.engine.worker_time import FILE
from weft.studies.results.load import collect, scores_of
from weft.studies.results.remarks import in_one_sentence
from weft.studies.results.summary import called, core_seconds, draw_report, in_tokens, summarise
from weft.studies.statistics.intervals import mean_of
from weft.training.config import RunConfig
from weft.training.learnt import GUESSING
from weft.training.storage.record import read_predictions, write_predictions

CANDIDATES = {"vit_nano_p4_32": 0.90, "mlp": 0.95, "control_identity_p4_32": 0.7, "hog+logistic": 0.85}


def test_a_study_is_summed_up_best_first_with_every_column(tmp_path: Path):
    """E2: accuracy, parameters, throughput and training cost side by side."""
    make_study(tmp_path, CANDIDATES, seeds=5)
    summary = summarise(collect(tmp_path))
    assert [row["name"] for row in summary["rows"]][:2] == ["mlp", "vit_nano_p4_32"]
    row = summary["rows"][0]
    assert row["low"] < row["score"] < row["high"] and row["seeds"] == 5
    for name in ("parameters", "macs", "train_speed", "speed", "latency", "memory", "core_seconds", "money"):
        assert row[name] is not None
    assert {verdict["question"] for verdict in summary["verdicts"]} == {"attention", "token mixing", "a network"}
    assert len(summary["pairs"]) == 6


def test_a_failed_run_stays_a_row_that_says_so(tmp_path: Path):
    study = make_study(tmp_path, CANDIDATES)
    job = next(job for job in study.jobs if job.candidate == "mlp")
    path = study.run_folder(job).path / "record.json"
    path.write_text(json.dumps(record(job.config, 0.1, status="failed", reason="step 8: training diverged")))
    row = next(row for row in summarise(collect(tmp_path))["rows"] if row["name"] == "mlp")
    assert row["seeds"] == 2
    assert row["failures"] == [{"seed": 0, "reason": "step 8: training diverged", "log": f"logs/{job.name}.txt"}]


def test_a_crashed_and_a_missing_run_are_told_apart(tmp_path: Path):
    study = make_study(tmp_path, {"mlp": 0.9})
    first, second, _ = study.jobs
    for job in (first, second):
        (study.run_folder(job).path / "record.json").unlink()
    study.record_failure(first, "its process died (SIGKILL)")
    (row,) = summarise(collect(tmp_path))["rows"]
    assert [failure["reason"] for failure in row["failures"]] == ["its process died (SIGKILL)"]
    assert row["waiting"] == 1, "which has not failed"
    draw_report(tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "1 failed" in page and "1 not run yet" in page


DAMAGED = ["", '{"status": "fin', '{"a": 1}', "[]", "3", "[" * 100_000, "\x00\xff", '{"format": "x"}', '{"curve": {}}']


@pytest.mark.parametrize("content", DAMAGED)
def test_half_written_and_alien_records_are_left_out_with_a_sentence(tmp_path: Path, content: str):
    study = make_study(tmp_path, {"mlp": 0.9})
    (study.run_folder(study.jobs[0]).path / "record.json").write_text(content)
    (tmp_path / "study.json").unlink()
    summary = summarise(collect(tmp_path))
    assert summary["rows"][0]["seeds"] == 2
    assert any("record.json" in problem and "left out" in problem for problem in summary["problems"])


@pytest.mark.parametrize(
    "change",
    [{"metrics": {"accuracy": "x"}}, {"metrics": {}}, {"config": {}}, {"curve": [3]}, {"curve": [{"kind": "train"}]},
     {"source": {}}, {"throughput": None}, {"wall_seconds": "long"}, {"environment": []}],
)  # fmt: skip
def test_records_with_wrong_parts_are_left_out(tmp_path: Path, change: dict[str, object]):
    study = make_study(tmp_path, {"mlp": 0.9}, seeds=2)
    path = study.run_folder(study.jobs[0]).path / "record.json"
    path.write_text(json.dumps(record(study.jobs[0].config, 0.9) | change))
    summary = draw_report(tmp_path)
    (problem,) = summary["problems"]
    assert summary["rows"][0]["seeds"] == 1 and "record.json" in problem and "left out" in problem


def test_any_folder_of_runs_is_a_leaderboard(tmp_path: Path):
    make_study(tmp_path, CANDIDATES)
    (tmp_path / "study.json").unlink()
    assert {row["name"] for row in summarise(collect(tmp_path))["rows"]} == set(CANDIDATES)


def test_runs_on_another_source_are_left_out(tmp_path: Path):
    study = make_study(tmp_path, {"mlp": 0.9})
    path = study.run_folder(study.jobs[0]).path / "record.json"
    other = record(RunConfig(source="x", model="mlp"), 0.5, source={"name": "x", "fingerprint": "0", "notes": []})
    path.write_text(json.dumps(other))
    (tmp_path / "study.json").unlink()
    assert any("another source" in problem for problem in summarise(collect(tmp_path))["problems"])


def test_a_run_judged_on_other_examples_is_not_paired_with_the_rest(tmp_path: Path):
    make_study(tmp_path / "a", {"mlp": 0.9}, seeds=2, examples=400)
    make_study(tmp_path / "b", {"vit_nano_p4_32": 0.9}, seeds=1, examples=300)
    summary = summarise(collect(tmp_path))
    assert any("other examples" in problem for problem in summary["problems"])


@pytest.mark.parametrize("kind, said", [("missing", "there is no folder"), ("empty", "holds no finished run")])
def test_a_folder_without_runs_is_refused(tmp_path: Path, kind: str, said: str):
    with pytest.raises(WeftError, match=said):
        collect(tmp_path / "nowhere" if kind == "missing" else tmp_path)


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_study_is_refused_and_what_can_be_done_without_is_not_missed(tmp_path: Path, content: str):
    study = make_study(tmp_path, {"mlp": 0.9}, seeds=2)
    missing = study.run_folder(study.jobs[1]).path
    study.record_failure(study.jobs[1], "its process died")
    (missing / "record.json").unlink()
    for path in (study.failure(study.jobs[1]), tmp_path / "mistakes.json"):
        path.write_text(content)
    (study.run_folder(study.jobs[0]).path / "inference.json").write_text(content)
    (row,) = draw_report(tmp_path)["rows"]
    assert row["seeds"] == 1 and row["speed"] is None and "damaged" in row["failures"][0]["reason"]
    (tmp_path / "study.json").write_text(content)
    with pytest.raises(Damaged, match=r"study.json is damaged"):
        collect(tmp_path)


@pytest.mark.parametrize(
    "change", [{"runs": 3}, {"candidates": [{"name": 1}]}, {"facts": {}}, {"notes": "x"}, {"runs": [{"name": "../x"}]}]
)
def test_a_study_with_wrong_parts_is_refused(tmp_path: Path, change: dict[str, object]):
    make_study(tmp_path, {"mlp": 0.9}, seeds=1)
    content = json.loads((tmp_path / "study.json").read_text())
    (tmp_path / "study.json").write_text(json.dumps(content | change))
    with pytest.raises(Damaged, match=r"study.json is damaged"):
        collect(tmp_path)


def test_a_newer_study_is_refused(tmp_path: Path):
    (tmp_path / "study.json").write_text('{"format": 99}')
    with pytest.raises(WeftError, match="newer weft"):
        collect(tmp_path)


def test_csv_and_json_hold_the_numbers_of_the_table(tmp_path: Path):
    make_study(tmp_path, CANDIDATES)
    summary = summarise(collect(tmp_path))
    lines = list(csv.DictReader(io.StringIO(as_csv(summary))))
    assert [line["name"] for line in lines] == [row["name"] for row in summary["rows"]]
    assert float(lines[0]["score"]) == summary["rows"][0]["score"]
    assert json.loads(as_json(summary))["verdicts"] == json.loads(json.dumps(summary["verdicts"]))


def test_an_interrupted_report_leaves_the_old_one_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    make_study(tmp_path, CANDIDATES)
    draw_report(tmp_path)
    before = (tmp_path / "report.html").read_bytes()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(WeftError, match="disk is full"):
        draw_report(tmp_path)
    assert (tmp_path / "report.html").read_bytes() == before
    assert [path.name for path in tmp_path.glob(".report*")] == []


def test_at_equal_time_the_cheapest_is_the_one_that_predicts_with_the_least(tmp_path: Path):
    study = make_study(tmp_path, {"vit_nano_p4_32": 0.9, "mlp": 0.9})
    for job in study.jobs:
        slow_to_train, large = job.candidate == "mlp", job.candidate != "mlp"
        took, macs = 9.0 if slow_to_train else 3.0, 9e6 if large else 1e6
        content = record(job.config, 0.9, wall_seconds=took, cpu_seconds=took, multiply_adds=macs)
        (study.run_folder(job).path / "record.json").write_text(json.dumps(content))
    collected = collect(tmp_path)
    assert summarise(collected)["recommendation"].startswith("Use vit_nano_p4_32: the cheapest")
    collected.study["match"] = "time"
    for file in tmp_path.glob("runs/*/inference.json"):
        file.unlink()
    assert summarise(collected)["recommendation"].startswith("Use mlp: the cheapest")
    for job in study.jobs:  # what was measured counts before what was counted
        speed = {"throughput": 10.0 if job.candidate == "mlp" else 99.0, "latency": 1.0, "threads": 1.0, "tokens": None}
        (study.run_folder(job).path / "inference.json").write_text(json.dumps(speed))
    assert summarise(collected)["recommendation"].startswith("Use vit_nano_p4_32: the cheapest")


def test_a_heading_names_the_source_without_the_way_to_it():
    assert [called(name) for name in ("digits", "data/pets/", "/mnt/a.csv", "hub:org/set")] == [
        "digits", "pets", "a.csv", "hub:org/set",
    ]  # fmt: skip


def finetuned(folder: Path, **config: Any) -> None:
    """Records as `weft finetune` writes them: a section more, and no named network."""
    for number, path in enumerate(sorted(folder.rglob("record.json"))):
        content = json.loads(path.read_text())
        content["kind"] = "finetune"
        content["config"] |= {
            "start": f"encoders/mini-{number % 2}",
            "model": "",
            "thawing": {"frozen": False},
            **config,
        }
        path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "config", [{}, {"thawing": {"frozen": True, "layers": []}}, {"model": "bert_mini", "network": {"depth": 0}}]
)
def test_fine_tuned_runs_are_a_leaderboard(tmp_path: Path, config: dict[str, Any]):
    make_study(tmp_path / "study", {"mlp": 0.9, "lenet5": 0.8}, seeds=1)
    finetuned(tmp_path / "study", **config)
    rows = summarise(collect(tmp_path / "study" / "runs"))["rows"]
    assert len(rows) == 2 and all(row["name"] and row["score"] for row in rows)
    assert all(row["commands"][0].startswith("weft finetune encoders/mini-") for row in rows)


def test_runs_behind_links_are_found(tmp_path: Path):
    make_study(tmp_path / "study", {"mlp": 0.9, "lenet5": 0.8}, seeds=1)
    (tmp_path / "mine").mkdir()
    for path in (tmp_path / "study" / "runs").iterdir():
        (tmp_path / "mine" / path.name).symlink_to(path)
    (tmp_path / "mine" / "circle").symlink_to(tmp_path / "mine")
    assert len(summarise(collect(tmp_path / "mine"))["rows"]) == 2


def test_unequal_training_has_a_column_and_no_verdict(tmp_path: Path):
    make_study(tmp_path / "study", {"mlp": 0.5, "vit_nano_p4_32": 0.95}, seeds=5)
    fair = summarise(collect(tmp_path / "study"))
    assert any(verdict["shown"] for verdict in fair["verdicts"]) and "shown to be better" in fair["recommendation"]
    assert "Steps" not in cell_table(fair)[0]
    for path in (tmp_path / "study").rglob("record.json"):
        content = json.loads(path.read_text())
        content["steps"] = content["plan"]["steps"] = 22 if content["config"]["model"] == "mlp" else 585
        path.write_text(json.dumps(content))
    found = summarise(collect(tmp_path / "study"))
    assert not any(verdict["shown"] for verdict in found["verdicts"])
    assert all("training was unequal by a factor of 26.6" in verdict["sentence"] for verdict in found["verdicts"])
    assert found["recommendation"].startswith("No recommendation: vit_nano_p4_32") and "mlp" in found["recommendation"]
    titles, lines = cell_table(found)
    assert [line[titles.index("Steps")] for line in lines] == ["585", "22"]


def changed(folder: Path, **changes: Any) -> None:
    """The records of a study with other parts."""
    for path in folder.rglob("record.json"):
        content = json.loads(path.read_text())
        for name, value in changes.items():
            content[name] = content[name] | value if isinstance(value, dict) and name in content else value
        path.write_text(json.dumps(content))


def test_balanced_accuracy_and_macro_f1_stand_beside_the_accuracy(tmp_path: Path):
    make_study(tmp_path, {"mlp": 0.9})
    changed(tmp_path, metrics={"balanced_accuracy": 0.8, "macro_f1": 0.7})
    summary = summarise(collect(tmp_path))
    (row,) = summary["rows"]
    assert (row["balanced_accuracy"], row["macro_f1"]) == (pytest.approx(0.8), pytest.approx(0.7))
    (line,) = csv.DictReader(io.StringIO(as_csv(summary)))
    assert float(line["macro_f1"]) == pytest.approx(0.7)


def test_a_leaderboard_never_says_a_hundred_percent_for_sure(tmp_path: Path):
    study = make_study(tmp_path, {"mlp": 0.9}, examples=100)
    for job in study.jobs:
        path = study.run_folder(job).path
        found = read_predictions(path)
        write_predictions(path, {**found, "predicted": found["target"]})
    (row,) = summarise(collect(tmp_path))["rows"]
    assert row["score"] == row["high"] == 1.0 and 0.9 < row["low"] < 0.98


def test_no_better_than_a_guess_is_said_first_and_nothing_of_it_advised(tmp_path: Path, capsys):
    make_study(tmp_path, {"mlp": 0.9, "vit_nano_p4_32": 0.9, "lenet5": 0.9})
    told = {"remark": "it has not learnt anything: every answer is '3'"}
    for path in tmp_path.rglob("record.json"):
        content = json.loads(path.read_text())
        if content["config"]["model"] == "mlp":
            path.write_text(json.dumps(content | {"learnt": told, "wall_seconds": 0.001}))
    summary = summarise(collect(tmp_path))
    assert summary["guesses"][0].startswith("mlp") and "not learnt anything" in summary["guesses"][0]
    assert "mlp" not in summary["recommendation"] and summary["recommendation"].startswith("Use ")
    show(summary)
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.index("it has not learnt anything") < printed.index("• Use ")
    changed(tmp_path, learnt=told)
    summary = summarise(collect(tmp_path))
    assert summary["recommendation"].startswith("No recommendation: no candidate has been shown")
    assert len(summary["guesses"]) == 1 and "mlp, vit_nano_p4_32, lenet5" in summary["guesses"][0], "one short sentence"
    assert summary["guesses"] == ["3 candidates have not learnt anything: mlp, vit_nano_p4_32, lenet5."]
    assert len(summary["guess_details"]) == 3


def test_what_was_lucky_on_validation_alone_is_not_advised(tmp_path: Path):
    """The best step was chosen on the validation rows; most runs do not keep on the test rows what it promised."""
    make_study(tmp_path, {"mlp": 0.52, "vit_nano_p4_32": 0.9, "lenet5": 0.9}, classes=["no", "yes"], examples=200)
    changed(tmp_path, learnt={"remark": ""})
    summary = summarise(collect(tmp_path))
    (said,) = summary["guesses"]
    assert said.startswith("mlp (3 of 3 seeds, the first being 0): it has not been shown to have learnt anything")
    assert "200 test rows" in said and "mlp" not in summary["recommendation"]


def test_several_candidates_that_learnt_nothing_are_told_in_the_words_of_a_run():
    nothing, unsure = "it has not learnt anything: x", "it has not been shown to have learnt anything: y"
    told = {"mlp": {0: nothing, 1: nothing}, "lenet5": {0: nothing, 1: unsure}, "tf": {0: f"{GUESSING}, though: z"}}
    (said,) = in_one_sentence(told, {"mlp": 2, "lenet5": 2, "tf": 1})
    assert said == (
        "2 candidates have not learnt anything: mlp, lenet5 (1 of 2 runs); "
        "1 candidate has not been shown to have learnt anything: lenet5 (1 of 2 runs); "
        "1 candidate has answers that are no better than a guess, though probabilities "
        "that tell the classes apart: tf."
    )


def test_the_only_class_that_is_answered_is_named(tmp_path: Path):
    """Also of a baseline, whose record holds its answers to the test split and no judgement."""
    make_study(tmp_path, {"mlp": 0.9}, seeds=1, classes=["ham", "spam"])
    changed(tmp_path, metrics={"confusion": [[0, 30], [0, 30]]})
    (said,) = summarise(collect(tmp_path))["guesses"]
    assert said == "mlp: it has not learnt anything: every answer to the 60 test rows is 'spam'"


@pytest.mark.parametrize("width", [70, 80, 200])
def test_names_are_not_cut_for_the_columns_beside_them(tmp_path: Path, width: int):
    names = ["mlp@efficientnet_lite0_finetuned_once", "mlp", "hog+logistic"]
    make_study(tmp_path, dict.fromkeys(names, 0.9))
    file = io.StringIO()
    show(summarise(collect(tmp_path)), Console(file=file, width=width))
    lines = file.getvalue().splitlines()
    assert all(any(line.startswith(name) for line in lines) for name in names) and "95 % interval" in lines[0]


def test_runs_on_a_source_that_was_changed_meanwhile_do_not_count(tmp_path: Path):
    study = make_study(tmp_path, {"mlp": 0.9, "lenet5": 0.8})
    path = study.run_folder(study.jobs[0]).path / "record.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"source": {**content["source"], "fingerprint": "e" * 32}}))
    summary = summarise(collect(tmp_path))
    row = next(row for row in summary["rows"] if row["name"] == "mlp")
    assert row["seeds"] == 2 and "changed meanwhile" in row["failures"][0]["reason"]
    assert any("changed meanwhile" in problem for problem in summary["problems"])


def test_what_a_reader_must_know_first_stands_before_the_verdicts(tmp_path: Path, capsys):
    make_study(tmp_path, {"mlp": 0.9, "resnet20_cifar": 0.5})
    content = json.loads((tmp_path / "study.json").read_text())
    content["facts"]["cautions"] = ["7 of 400 test rows occur in the training split, so scores come out too high."]
    (tmp_path / "study.json").write_text(json.dumps(content))
    show(draw_report(tmp_path))
    printed, page = " ".join(capsys.readouterr().out.split()), (tmp_path / "report.html").read_text()
    assert printed.index("7 of 400 test rows") < printed.index("• convolution")
    assert page.index("7 of 400 test rows") < page.index('id="verdicts-title"')


def test_an_open_question_comes_with_what_would_settle_it(tmp_path: Path):
    make_study(tmp_path, {"vit_nano_p4_32": 0.90, "mlp": 0.905}, seeds=3, examples=200)
    (needed,) = summarise(collect(tmp_path))["settling"]
    assert needed["question"] == "attention" and "would" in needed["sentence"]


def ran_here(study: Study, worker_seconds: float) -> None:
    """Leave what tells that the runs of a study were trained in its folder, by workers that had so much time."""
    for job in study.jobs:
        study.log(job).parent.mkdir(exist_ok=True)
        study.log(job).write_text("")
    (study.folder / FILE).write_text(json.dumps({"seconds": worker_seconds}))


@pytest.mark.parametrize(
    "command, spent, flags",
    [
        ("weft compare x.csv", 600.0, "--seeds 5 --time 11m"),
        ("weft compare x.csv --amount 9s", None, "--seeds 5"),
        ("weft x", 600.0, ""),
    ],
)
def test_what_would_settle_it_is_told_as_flags_of_the_command(
    tmp_path: Path, command: str, spent: float | None, flags: str
):
    """Four seeds of two candidates, 3 s each, at half of the time of two workers: 24 s after ten minutes."""
    study = make_study(tmp_path, {"vit_nano_p4_32": 0.90, "mlp": 0.905}, seeds=1, examples=200)
    ran_here(study, worker_seconds=12.0)
    content = json.loads((tmp_path / "study.json").read_text())
    content |= {"match": "time", "command": command, "spent": spent}
    (tmp_path / "study.json").write_text(json.dumps(content))
    (needed,) = summarise(collect(tmp_path))["settling"]
    assert needed["minutes"] == pytest.approx(4 * (3 + 3) / 2 / 0.5 / 60)
    assert needed["sentence"].endswith(f": {flags}" if flags else "(less than a minute)")


def test_test_rows_that_were_not_judged_are_named_where_they_would_settle_it(tmp_path: Path):
    study = make_study(tmp_path, {"vit_nano_p4_32": 0.80, "mlp": 0.82}, seeds=5, examples=100)
    replace(study, facts=replace(study.facts, test_rows=10**6), command="weft compare x.csv").save()
    (needed,) = summarise(collect(tmp_path))["settling"]
    assert needed["rows"] and needed["sentence"].endswith(f": --test-rows {needed['rows']}")


def test_one_seed_is_marked_in_every_pair(tmp_path: Path):
    make_study(tmp_path, {"vit_nano_p4_32": 0.5, "mlp": 0.95}, seeds=1)
    summary = summarise(collect(tmp_path))
    assert all(pair["alone"] for pair in summary["pairs"]) and not any(v["shown"] for v in summary["verdicts"])
    assert "One seed" in summary["recommendation"]


def test_runs_from_weights_trained_before_are_asked_about_against_those_from_scratch(tmp_path: Path):
    make_study(tmp_path, {"vit_nano_p4_32": 0.97, "mlp": 0.9}, seeds=3)
    for path in tmp_path.rglob("record.json"):
        content = json.loads(path.read_text())
        if content["config"]["model"].startswith("vit"):
            content["config"]["start"] = "encoders/mini"
            path.write_text(json.dumps(content))
    (verdict,) = summarise(collect(tmp_path))["verdicts"]
    assert verdict["sentence"].startswith("pre-training: +6.9 points over the best network from scratch")


def test_the_interval_of_a_regression_knows_that_its_targets_are_a_sample(tmp_path: Path):
    study = make_study(tmp_path, {"mlp": 0.9}, examples=100)
    rng = np.random.default_rng(0)
    target = np.exp(rng.normal(size=100)).astype(np.float32)
    for job in study.jobs:
        predicted = target + rng.normal(0, 0.5, 100).astype(np.float32)
        found = {"predicted": predicted, "confidence": np.ones(100, np.float32), "target": target}
        write_predictions(study.run_folder(job).path, found)
    changed(tmp_path, metric="r2", metrics={"r2": 0.9})
    (row,) = summarise(collect(tmp_path))["rows"]
    assert row["low"] < row["score"] < row["high"] <= 1.0
    known = mean_of(scores_of(collect(tmp_path).results))
    assert row["high"] - row["low"] > 1.3 * (known.high - known.low)


def test_a_learning_curve_comes_with_what_more_rows_would_bring(tmp_path: Path):
    make_study(tmp_path, {"mlp": 0.9}, seeds=3)
    collected = collect(tmp_path)
    shares = dict(zip((0, 1, 2), (0.1, 0.3, 1.0), strict=True))
    curve = replace(collected, results=[replace(result, share=shares[result.seed]) for result in collected.results])
    (forecast,) = summarise(curve)["more_rows"]
    assert forecast["candidate"] == "mlp" and forecast["rows"] == 1295 and len(forecast["forecasts"]) == 2
    assert summarise(collected)["more_rows"] == []


def test_the_cost_of_a_run_is_its_processor_time_where_that_is_known() -> None:
    """On a busy machine a run takes longer and costs the same."""
    busy = {"wall_seconds": 12.0, "cpu_seconds": 3.0, "environment": {"threads": 2, "device": "cpu"}}
    assert core_seconds(busy) == 3.0
    assert core_seconds({**busy, "cpu_seconds": 0.0}) == 24.0
    assert core_seconds({**busy, "environment": {"threads": 2, "device": "cuda"}}) == 24.0
    assert core_seconds({"wall_seconds": 12.0}) == 12.0


def lopsided(folder: Path, metric: str | None, seeds: int = 3) -> None:
    """99 rows of one class to one of the other: `mlp` knows the common class alone, `lenet5` both, but not as well."""
    study = make_study(folder, {"mlp": 0.9, "lenet5": 0.9}, seeds=seeds, classes=["ham", "spam"])
    target = (np.arange(2000) % 100 == 0).astype(np.int32)
    for job in study.jobs:
        rng = np.random.default_rng(job.seed)
        guess, known = rng.random(2000) < 0.001, rng.random(2000) < 0.9
        said = np.where(guess, 1, 0) if job.candidate == "mlp" else np.where(known, target, 1 - target)
        found = {"predicted": said.astype(np.int32), "confidence": np.ones(2000, np.float32), "target": target}
        write_predictions(study.run_folder(job).path, found)
    if metric is not None:
        changed(folder, metric=metric, metrics={metric: 0.5, "accuracy": 0.9}, config={"objective": {"metric": metric}})
    changed(folder, learnt={"learnt": True})


def test_a_metric_that_was_asked_for_decides(tmp_path: Path):
    lopsided(tmp_path / "a", None)
    plain = summarise(collect(tmp_path / "a"))
    assert plain["metric"] == "accuracy" and plain["rows"][0]["name"] == "mlp"
    lopsided(tmp_path / "b", "balanced_accuracy")
    summary = draw_report(tmp_path / "b")
    assert (summary["metric"], summary["own_metric"], summary["unit"]) == ("balanced_accuracy", None, "points")
    best, worst = summary["rows"]
    assert best["name"] == "lenet5" and best["score"] == pytest.approx(0.9, abs=0.05) and worst["score"] < 0.55
    assert best["low"] < best["score"] < best["high"] <= 1
    (verdict,) = summary["verdicts"]
    assert verdict["mean"] > 0.3 and verdict["shown"] and summary["recommendation"].startswith("Use lenet5")
    titles, _ = cell_table(summary, 200)
    assert titles[1] == "Balanced accuracy" and "Accuracy" in titles and "Balanced" not in titles
    assert "balanced accuracy on the validation split" in (tmp_path / "b" / "report.html").read_text()


def test_macro_f1_decides_if_it_was_asked_for(tmp_path: Path):
    """A macro-F1 of 50 % for knowing the common class alone, and of less for false alarms about the rare one."""
    from sklearn.metrics import f1_score

    lopsided(tmp_path, "macro_f1")
    summary = draw_report(tmp_path)
    assert (summary["metric"], summary["own_metric"], summary["unit"]) == ("macro_f1", None, "points")
    for row, path in zip(summary["rows"], ("lenet5", "mlp"), strict=True):
        runs = [
            read_predictions(found.parent) for found in tmp_path.rglob("predictions.safetensors") if path in str(found)
        ]
        wanted = [f1_score(run["target"], run["predicted"], average="macro", zero_division=0) for run in runs]
        assert len(runs) == 3 and row["name"] == path
        assert row["score"] == pytest.approx(np.mean(wanted)) and row["low"] < row["score"] < row["high"]
    (verdict,) = summary["verdicts"]
    apart = summary["rows"][0]["score"] - summary["rows"][1]["score"]
    assert abs(verdict["mean"]) == pytest.approx(apart) and "points" in verdict["sentence"]
    assert not [caution for caution in summary["cautions"] if "are of" in caution]
    titles, lines = cell_table(summary, 200)
    assert titles[1] == "Macro-F1" and "Accuracy" in titles and titles.count("Macro-F1") == 1 and "%" in lines[0][1]


def test_a_metric_that_cannot_decide_is_said_not_to(tmp_path: Path):
    lopsided(tmp_path, "matthews", seeds=2)
    summary = draw_report(tmp_path)
    assert summary["metric"] == "accuracy"
    (told,) = summary["cautions"]
    assert told.startswith("Order, intervals, verdicts and advice are of accuracy: matthews, for which there are no")
    assert "the best step of each run and, on the validation split, which candidate stands for its kind" in told
    page = (tmp_path / "report.html").read_text()
    assert "matthews on the validation split" in page and "accuracy on the validation split" not in page


def test_runs_that_were_asked_for_other_metrics_are_compared_by_accuracy(tmp_path: Path):
    lopsided(tmp_path / "a", None)
    lopsided(tmp_path / "b", "balanced_accuracy")
    for path in (tmp_path / "b").rglob("predictions.safetensors"):
        found = read_predictions(path.parent)
        write_predictions(path.parent, {**found, "predicted": found["target"]})
    summary = summarise(collect(tmp_path))
    assert summary["metric"] == "accuracy" and summary["own_metric"] == "balanced_accuracy"
    assert "balanced_accuracy, which not all runs were asked for" in summary["cautions"][0]
    assert {row["name"]: row["score"] == 1 for row in summary["rows"]} == {
        "mlp": False, "lenet5": False, "mlp-2": True, "lenet5-2": True
    }  # fmt: skip
    assert all(row["score"] <= 1 and row["high"] <= 1 for row in summary["rows"])


def test_rows_of_groups_are_counted_by_group_and_told(tmp_path: Path):
    """What the first network gets wrong is all of one group in ten: then its score is known far less well."""
    study = make_study(tmp_path, {"mlp": 0.9, "lenet5": 0.8})
    before = summarise(collect(tmp_path))
    first = read_predictions(study.run_folder(study.jobs[0]).path)
    order = np.argsort(first["predicted"] == first["target"], kind="stable")
    groups = np.empty(400, np.int64)
    groups[order] = np.arange(400) // 20
    for job in study.jobs:
        path = study.run_folder(job).path
        write_predictions(path, {**read_predictions(path), "group": groups})
    after = summarise(collect(tmp_path))
    told = "The 400 test rows are of 20 groups, which intervals and verdicts count instead of rows."
    assert after["cautions"] == [told] and before["cautions"] == []
    old, new = before["rows"][0], after["rows"][0]
    assert new["score"] == old["score"] and new["high"] - new["low"] > 2 * (old["high"] - old["low"])


@pytest.mark.parametrize("names", [["mlp", "lenet5"], ["mlp", "lenet5", "vit_nano_p4_32"]])
def test_over_fitting_of_several_candidates_is_one_sentence(tmp_path: Path, names: list[str]):
    study = make_study(tmp_path, dict.fromkeys(names, 0.9), seeds=2)
    for job in study.jobs:
        file = study.run_folder(job).path / "record.json"
        content = json.loads(file.read_text())
        sound = job.candidate == "mlp" and job.seed == 1
        for event in (event for event in content["curve"] if event["kind"] == "evaluation"):
            event |= {"train_loss": 0.4 if sound else 0.01, "validation_loss": 0.5}
        file.write_text(json.dumps(content))
    said = [problem for problem in summarise(collect(tmp_path))["problems"] if "over-fitting" in problem]
    if len(names) < 3:
        assert [one.partition(":")[0] for one in said] == [
            "mlp (1 of 2 seeds, the first being 0)",
            "lenet5 (2 of 2 seeds, the first being 0)",
        ]
    else:
        assert len(said) == 1 and "mlp (1 of 2 runs), lenet5, vit_nano_p4_32;" in said[0]


def test_where_a_speed_is_missing_a_baseline_is_not_the_cheapest_for_its_few_weights(tmp_path: Path):
    study = make_study(tmp_path, {"mlp": 0.9, "hog+logistic": 0.9})
    for job in study.jobs:
        file = study.run_folder(job).path / "record.json"
        macs = 5_000 if job.candidate == "hog+logistic" else 60_000
        file.write_text(json.dumps(json.loads(file.read_text()) | {"multiply_adds": macs}))
        (file.parent / "inference.json").unlink(missing_ok=True)
    collected = collect(tmp_path)
    collected.study["match"] = "time"
    assert summarise(collected)["recommendation"].startswith("Use mlp: the cheapest")


def test_speeds_of_what_reads_no_tokens_are_told_in_as_many_as_networks_read_of_a_text():
    network = {"tokens": 20.0, "speed": 100.0, "train_speed": None}
    baseline = {"tokens": None, "speed": 100.0, "train_speed": 5.0}
    in_tokens(both := [dict(network), dict(baseline), {"tokens": 40.0, "speed": 1.0, "train_speed": 1.0}])
    assert [row["speed"] for row in both] == [2000.0, 3000.0, 40.0]
    assert [row["train_speed"] for row in both] == [None, 150.0, 40.0]
    in_tokens(alone := [dict(baseline)])
    assert alone == [baseline], "of images, examples a second"
