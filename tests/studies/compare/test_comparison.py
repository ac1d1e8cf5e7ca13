"""A comparison from end to end: what it leaves behind, and that nothing finished is lost or done twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from studies.fabricated import asked, facts, make_study
from weft.api import run_comparison
from weft.commands.main import dispatch
from weft.errors import Interrupted, WeftError
from weft.studies.compare import comparison
from weft.studies.compare.comparison import compare, earlier, plan_comparison, require_same_source
from weft.studies.compare.config import ComparisonConfig, decided
from weft.studies.compare.mcnemar import compare_two
from weft.studies.compare.run_configs import on_part, run_config, steps_per_evaluation, with_batch
from weft.studies.compare.timed.state import question_of
from weft.studies.compare.trained import trained_here
from weft.studies.results.load import collect, describe_candidate
from weft.studies.results.summary import draw_report
from weft.training.config import ExecutionConfig
from weft.training.storage.run_folder import RunFolder

pytestmark = pytest.mark.usefixtures("quick_workers")


def stamps(folder: Path) -> dict[str, int]:
    """When each record was written."""
    return {path.parent.name: path.stat().st_mtime_ns for path in folder.glob("runs/*/record.json")}


def test_every_candidate_and_seed_has_a_record_with_predictions_at_the_budget(finished: Path):
    """E10: candidates of several families on one source, each at the same budget."""
    results = collect(finished).results
    assert [(r.candidate, r.seed) for r in results].count(("mlp", 1)) == 1 and len(results) == 5
    assert all(result.finished for result in results)
    for result in results:
        assert result.predictions is not None and result.record is not None
        right = (result.predictions["predicted"] == result.predictions["target"]).mean()
        assert right == pytest.approx(result.record["metrics"]["accuracy"])
        if "+" not in result.record["config"]["model"]:
            assert result.record["parameters"] == pytest.approx(10_000, rel=0.03)


def test_the_summary_has_speed_latency_and_commands(finished: Path):
    for row in draw_report(finished)["rows"]:
        assert row["speed"] > 0 and row["latency"] > 0 and row["train_speed"] > 0
        assert row["commands"][0].startswith("weft ")
    assert json.loads((finished / "mistakes.json").read_text())["examples"][0]["picture"].startswith("data:image/png")


def test_seeds_share_their_probe_and_the_overhead_is_told(finished: Path):
    plans = [RunFolder(r.path).plan() for r in collect(finished).results if r.candidate == "mlp"]
    assert len(plans) == 2 and plans[0] == plans[1] is not None
    assert any("went into training" in note for note in draw_report(finished)["notes"])
    assert 0 < (collect(finished).busy or 0) < 1, "by which minutes of further seeds are told"


def test_the_command_of_a_row_repeats_its_run(finished: Path, tmp_path: Path):
    row = next(row for row in draw_report(finished)["rows"] if row["name"] == "vit_nano_p4_32")
    assert dispatch([*row["commands"][0].split()[1:], "--output", str(tmp_path / "again")]) == 0
    first = next(r for r in collect(finished).results if r.candidate == "vit_nano_p4_32" and r.seed == 0)
    again = RunFolder(tmp_path / "again").record()
    assert first.record is not None and again is not None
    assert again["metrics"]["accuracy"] == first.record["metrics"]["accuracy"]


def test_a_finished_candidate_is_never_run_twice_and_a_new_seed_is_added(finished: Path, tmp_path: Path):
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    before = stamps(folder)
    compare(asked(seeds=3), folder, "weft compare", lambda sentence: None)
    after = stamps(folder)
    assert len(after) == len(before) + 2
    assert {name: after[name] for name in before} == before


def test_an_candidate_that_cannot_run_is_a_row_with_its_reason_and_the_study_goes_on(tmp_path: Path):
    """A batch larger than the set is refused by the run; here one candidate's folder is occupied by a file."""
    said: list[str] = []
    first = compare(asked(models="mlp", seeds=1, baseline=False), tmp_path / "a", "", said.append)
    blocked = tmp_path / "b" / "runs" / first.jobs[0].name
    blocked.parent.mkdir(parents=True)
    blocked.write_text("in the way")
    compare(asked(models="mlp", seeds=2, baseline=False), tmp_path / "b", "", said.append)
    (row,) = draw_report(tmp_path / "b")["rows"]
    assert row["seeds"] == 1 and len(row["failures"]) == 1
    assert "in the way" not in row["failures"][0]["reason"] and row["failures"][0]["log"].startswith("logs/")
    assert (tmp_path / "b" / row["failures"][0]["log"]).is_file()


def test_a_study_that_is_killed_goes_on_and_keeps_what_was_finished(tmp_path: Path):
    script = (
        "from pathlib import Path; from studies.fabricated import asked\n"
        "from weft.studies.compare.comparison import compare\n"
        f"folder = Path({str(tmp_path / 'study')!r})\n"
        "if __name__ == '__main__': compare(asked(steps=40, baseline=False), folder, '', print)"
    )
    (tmp_path / "script.py").write_text(script)
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py")], env=environment, stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 600  # a busy machine
    while len(stamps(tmp_path / "study")) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = stamps(tmp_path / "study")
    study = compare(
        asked(steps=40, baseline=False), tmp_path / "study", "", lambda sentence: None
    )  # its last worker may still live
    after = stamps(tmp_path / "study")
    assert 2 <= len(before) < 4 and all(study.finished(job) for job in study.jobs)
    assert len(after) == 4 and {name: after[name] for name in before} == before


def test_a_damaged_study_is_written_anew_where_there_are_runs_beside_it(tmp_path: Path):
    make_study(tmp_path / "ours", {"mlp": 0.9})
    (tmp_path / "theirs").mkdir()
    for name in ("ours", "theirs"):
        (tmp_path / name / "study.json").write_text('{"for')
    said: list[str] = []
    assert earlier(tmp_path / "ours", said.append) == {} and "written anew" in said[0]
    with pytest.raises(WeftError, match="choose another --output"):
        earlier(tmp_path / "theirs", said.append)


def test_two_given_checkpoints_are_compared_by_mcnemar(finished: Path):
    runs = sorted(path for path in (finished / "runs").iterdir() if path.name.startswith(("mlp", "vit")))
    sentence = compare_two(runs[0], runs[-1])
    assert "McNemar, p = " in sentence and "these two networks" in sentence


def test_networks_at_their_named_size_are_tuned_too(tmp_path: Path):
    question = asked(models="mlp,resnet8_cifar", match="none", amount=None, seeds=1, baseline=True, trials=2, steps=8)
    compare(question, tmp_path, "", lambda sentence: None)
    records = [json.loads(path.read_text()) for path in tmp_path.glob("runs/*/record.json")]
    assert sorted(record["config"].get("model", "") for record in records).count("mlp") == 3
    assert len(records) == 7  # two trials and a run of each, and the baseline


def test_learning_curves_and_trials(tmp_path: Path):
    """Shares of the rows for any comparison; as many rates for each candidate, tried for a quarter of a run."""
    question = asked(models="mlp", seeds=1, baseline=False, learning_curve=True, trials=3)
    study = compare(question, tmp_path, "", lambda sentence: None)
    assert {point["share"] for point in draw_report(tmp_path)["learning"]} == {0.1, 0.3, 1.0}
    records = [json.loads(path.read_text()) for path in tmp_path.glob("runs/*/record.json")]
    steps = max(record["config"]["duration"]["steps"] for record in records)
    tried = [record for record in records if record["config"]["duration"]["steps"] == steps // 4]
    assert len(tried) == 3 and len(records) == 6  # and a whole run on each share
    best = max(tried, key=lambda r: max(e["validation_metric"] for e in r["curve"] if "validation_metric" in e))
    assert {job.config.optimisation.lr for job in study.jobs} == {best["config"]["optimisation"]["lr"]}


def test_the_folder_of_a_comparison_on_other_data_is_refused(tmp_path: Path):
    stored = {"facts": {"name": "digits", "fingerprint": "a"}}
    said: list[str] = []
    with pytest.raises(WeftError, match="holds a comparison on digits, not on cancer; choose another --output"):
        require_same_source(stored, replace(facts(), name="cancer", fingerprint="b"), tmp_path, said.append)
    require_same_source(stored, replace(facts(), name="../digits", fingerprint="a"), tmp_path, said.append)
    assert not said
    require_same_source(stored, replace(facts(), name="digits", fingerprint="b"), tmp_path, said.append)
    assert "digits has changed since the last session" in said[0]
    require_same_source({}, facts(), tmp_path, said.append)


@pytest.mark.parametrize(("rows", "size", "of_parts"), [(12, 4, 2), (64, 8, 4), (300, 32, 4), (1295, 64, 16)])
def test_the_batch_is_held_by_the_rows_several_times(rows: int, size: int, of_parts: int):
    config = with_batch(ComparisonConfig(), rows)
    assert config.optimisation.batch_size == size
    part = on_part(run_config(config, None, 0, rows), 0.1, rows)
    assert (part.optimisation.batch_size, part.reading.train_fraction) == (of_parts, 0.1)


def test_a_learning_curve_leaves_the_runs_on_all_rows_as_they_are():
    """Else a finished comparison that is asked for one would be made anew."""
    questions = [with_batch(ComparisonConfig(source="photos", learning_curve=curve), 1295) for curve in (False, True)]
    assert question_of(questions[0], "f") == question_of(questions[1], "f")
    candidates = [describe_candidate("mlp", "mlp", {})]
    plans = [plan_comparison(question, Path(), "", facts(), candidates) for question in questions]
    whole, curve = ({job.name for job in plan.jobs} for plan in plans)
    assert whole < curve and len(curve) == 3 * len(whole)


def test_a_source_of_ones_own_is_compared_for_a_quarter_of_an_hour_unless_something_else_was_said():
    assert decided(ComparisonConfig(source="photos")).time == "15m"
    assert decided(ComparisonConfig(source="digits")).match == "params"
    assert decided(ComparisonConfig(source="photos", epochs=3)).match == "params"
    assert decided(ComparisonConfig(source="photos", time="1m")).match == "time"
    assert decided(ComparisonConfig(source="photos", match="time", amount="5s")).time is None
    assert decided(ComparisonConfig(source="photos", match="macs")).time is None


@pytest.mark.parametrize(
    ("steps", "rows", "expected"), [(200, 1437, 22), (500, 45_000, 125), (6000, 1437, 18 * 22), (3, 64, 1)]
)
def test_every_run_has_a_curve_of_several_points(steps: int, rows: int, expected: int) -> None:
    """A run of less than an epoch as well."""
    asked = ComparisonConfig(source="digits")
    assert steps_per_evaluation(asked, steps, rows) == expected


def start_on_digits(folder: Path, **reading: object) -> str:
    """A finished run on the source of `facts`, cut by these settings."""
    study = make_study(folder, {"mlp": 0.9}, seeds=1)
    path = study.run_folder(study.jobs[0]).path / "record.json"
    content = json.loads(path.read_text())
    content["config"]["reading"] |= reading
    path.write_text(json.dumps(content))
    return str(path.parent)


def test_a_start_is_never_tested_on_rows_that_it_has_learnt_from(tmp_path: Path):
    small = replace(facts(), rows=200, held_out=True)
    start = start_on_digits(tmp_path / "a")
    question = ComparisonConfig(source="digits", time="15m", start=(start,))
    assert trained_here(question, small) == [start]
    assert trained_here(question, replace(small, fingerprint="e" * 32)) == []
    assert trained_here(replace(question, start=(str(tmp_path / "nowhere"),)), small) == []
    with pytest.raises(WeftError, match=r"--folds would test rows that .* has learnt from; leave out --folds"):
        trained_here(replace(question, reading=replace(question.reading, folds=5)), small)
    for reading, said in (({"split_seed": 3}, "--split-seed was 3; give the same"), ({"folds": 5}, "cross-validation")):
        other = start_on_digits(tmp_path / said[:5], **reading)
        with pytest.raises(WeftError, match=said):
            trained_here(replace(question, start=(other,)), small)
        assert trained_here(replace(question, start=(other,)), replace(small, held_out=False)) == [other]


def test_a_start_is_not_left_out_in_silence_where_steps_are_held_equal(tmp_path: Path) -> None:
    question = ComparisonConfig(source="digits", start=("nowhere",), models="mlp", match="params", steps=2)
    with pytest.raises(WeftError, match="--start adds trained networks where time is held equal; add --time"):
        compare(question, tmp_path / "study", "weft compare", lambda _: None)


@pytest.mark.parametrize("finished", [True, False])
def test_an_interrupted_comparison_leaves_a_report_of_what_there_is_and_names_the_command_that_goes_on(
    finished: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def interrupted(*_: object) -> None:
        study = make_study(tmp_path / "out", {"mlp": 0.9, "vit_nano_p4_32": 0.8}, seeds=1)
        for job in study.jobs[1 if finished else 0 :]:
            shutil.rmtree(study.run_folder(job).path)
        raise Interrupted("interrupted; the same command goes on")

    monkeypatch.setattr(comparison, "compare", interrupted)
    with pytest.raises(Interrupted) as stopped:
        run_comparison(asked(), tmp_path / "out", "weft compare photos --time 5m")
    assert stopped.value.code == 130
    assert str(stopped.value) == "interrupted; the same command goes on (weft compare photos --time 5m)"
    assert (tmp_path / "out" / "report.html").is_file() is finished
    assert not finished or "not run yet" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "muon"), ({"lr": 0.001}, "adamw"), ({"lr": 0.01, "opt": "muon"}, "muon"), ({"opt": "sgd"}, "sgd")],
)
def test_a_rate_alone_is_one_of_adamw_as_for_a_single_run(given: dict[str, Any], expected: str):
    moved = replace(ComparisonConfig().optimisation, **given)
    assert decided(ComparisonConfig(source="digits", optimisation=moved)).optimisation.opt == expected


def test_shards_are_compared_with_adamw():
    asked = ComparisonConfig(source="digits", execution=ExecutionConfig(strategy="fsdp"))
    assert decided(asked).optimisation.opt == "adamw"
