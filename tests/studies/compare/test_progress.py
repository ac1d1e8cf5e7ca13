"""A comparison on the terminal: a table of candidates where there is one, plain lines where there is not."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from studies.fabricated import make_study
from weft.studies.compare import progress
from weft.studies.compare.candidates import Candidate
from weft.studies.compare.progress import Progress, clock_time, shown
from weft.studies.compare.timed.trials import other_size


def drawn(found: Progress, width: int = 80) -> str:
    file = io.StringIO()
    Console(file=file, width=width).print(found.table())
    return file.getvalue()


def test_every_candidate_has_its_state_score_spread_and_the_time_left(tmp_path: Path):
    study = make_study(tmp_path, {"mlp": 0.9, "vit_nano_p4_32": 0.8, "resnet20_cifar": 0.7, "lenet5": 0.6}, seeds=2)
    by_name = {name: [job for job in study.jobs if job.candidate == name] for name in ("vit_nano_p4_32", "lenet5")}
    (study.run_folder(by_name["vit_nano_p4_32"][1]).path / "record.json").unlink()  # under way
    for job in by_name["lenet5"]:
        for file in study.run_folder(job).path.iterdir():
            file.unlink()
    study.record_failure(by_name["lenet5"][0], "its process died")
    found = Progress()
    found.watch(study, study.jobs, "seed 1", lambda: 754.0)
    text = drawn(found)
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert text.splitlines()[0].split() == ["seed", "1", "state", "validation", "spread"]
    assert "2 done" in lines["mlp"] and "0.9" in lines["mlp"] and "…" in lines["mlp"]
    assert "training seed 1, 1 done" in lines["vit_nano_p4_32"] and "1 failed, 1 waiting" in lines["lenet5"]
    assert "12:34 left" in text and "6 of 8 runs of this stage" in text


def test_trials_of_one_rate_are_told_apart_by_their_size(tmp_path: Path):
    study = make_study(tmp_path, {"mlp": 0.9}, seeds=1)
    config = study.jobs[0].labelled
    trial = replace(
        config,
        optimisation=replace(config.optimisation, lr=0.003),
        objective=replace(config.objective, judged_on="validation"),
    )
    usual = Candidate("mlp", "mlp", "mlp", count={"params": 50_000})
    smaller = replace(usual, count={"params": 12_345}, img_size=48)
    said = [replace(study.jobs[0], config=trial, size=other_size(each, usual)).which for each in (usual, smaller)]
    assert said == ["rate 0.003", "rate 0.003 with 12.3 k parameters at 48 px"]
    assert study.jobs[0].which == "seed 0"


@pytest.mark.parametrize("width", [60, 80])
def test_the_names_of_the_usual_candidates_are_whole(tmp_path: Path, width: int):
    study = make_study(tmp_path, {"mlp": 0.9}, seeds=1)
    found = Progress()
    found.watch(study, [replace(study.jobs[0], candidate="efficientnet_lite0+probe")], "first", None)
    assert "efficientnet_lite0+probe" in drawn(found, width)


def test_times_are_as_on_a_clock():
    assert [clock_time(value) for value in (0.2, 65, 3725)] == ["00:00", "01:05", "1:02:05"]


def test_without_a_terminal_there_are_lines_alone(capsys: pytest.CaptureFixture[str]):
    with shown() as (say, watch):
        say("[a] plain line")
        assert watch is progress.unwatched
    assert capsys.readouterr().out == "[a] plain line\n"
