"""E4, E5, E6 and E7 at smoke scale, really carried out: end to end, killed in the middle, and refused bad input."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from weft.commands.main import main
from weft.errors import WeftError
from weft.studies.experiments.text_tables import run_experiment

pytestmark = pytest.mark.usefixtures("quick_workers")


def study(words: str, capsys: pytest.CaptureFixture[str] | None = None) -> tuple[int, str]:
    """Exit code and output of `weft study …`."""
    with pytest.raises(SystemExit) as exit_:
        main(["study", *words.split()])
    printed = capsys.readouterr() if capsys else None
    return int(exit_.value.code or 0), printed.out + printed.err if printed else ""


def records(folder: Path) -> dict[str, float]:
    """When each record of a study was written."""
    return {path.parent.name: path.stat().st_mtime_ns for path in folder.glob("runs/*/record.json")}


@pytest.mark.slow
def test_e4_runs_at_smoke_scale_says_its_prediction_and_ends_with_its_table(tmp_path: Path, capsys):
    code, printed = study(f"run e4 pydocs --scale smoke --output {tmp_path / 'e4'}", capsys)
    assert code == 0
    assert re.search(r"predicted: .* for 8 runs", printed)
    assert printed.index("predicted:") < printed.index("[1/8]")
    for published in ("5.14", "4.97", "4.53", "4.35"):
        assert published in printed
    assert "Of 4 published orderings" in printed and "were predicted to take" in printed
    assert len(records(tmp_path / "e4")) == 8
    page = (tmp_path / "e4" / "report.html").read_text()
    assert "perplexity, measured here" in page and "perplexity, published" in page
    before = records(tmp_path / "e4")
    code, printed = study(f"run e4 pydocs --scale smoke --output {tmp_path / 'e4'}", capsys)
    assert code == 0 and "all 8 runs have ended already" in printed
    assert records(tmp_path / "e4") == before  # nothing is run twice
    assert "5.14" in study(f"show e4 --output {tmp_path / 'e4'}", capsys)[1]


@pytest.mark.slow
def test_e4_killed_in_the_middle_goes_on_and_runs_nothing_twice(tmp_path: Path, capsys):
    folder = tmp_path / "e4"
    words = ["study", "run", "e4", "pydocs", "--scale", "smoke", "--output", str(folder)]
    process = subprocess.Popen([sys.executable, "-m", "weft", *words], stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 600  # a busy machine
        while len(records(folder)) < 2 and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    before, prediction = records(folder), (folder / "experiment.json").read_bytes()
    assert 2 <= len(before) < 8
    code, printed = study(" ".join(words[1:]), capsys)
    after = records(folder)
    assert code == 0 and len(after) == 8
    assert {name: after[name] for name in before} == before
    assert (folder / "experiment.json").read_bytes() == prediction
    assert re.search(r"\d of 8 runs are finished already", printed)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "table", "runs"), [("e5", 7, 8), ("e6", 8, 8), ("e7", 9, 12)])
def test_e5_e6_e7_run_at_smoke_scale_and_end_with_their_table(name: str, table: int, runs: int, tmp_path: Path, capsys):
    code, printed = study(f"run {name} pydocs --scale smoke --seeds 1 --output {tmp_path}", capsys)
    assert code == 0, printed
    assert f"for {runs} runs" in printed and f"table {table} on pydocs" in printed
    assert len(records(tmp_path)) == runs
    assert "failed" not in printed and "not run yet" not in printed
    assert f"Table {table} on" in (tmp_path / "report.html").read_text()


def test_a_folder_holds_one_request_only(tmp_path: Path, capsys):
    from studies.experiments.text_tables.fabricated import make

    make(tmp_path, {"split": 4.0})
    stored = json.loads((tmp_path / "experiment.json").read_text())
    asked = {"source": "pydocs", "steps": 20, "time": None, "tasks": {}, "encoder": None}
    (tmp_path / "experiment.json").write_text(json.dumps({**stored, "asked": asked}))
    code, printed = study(f"run e4 pydocs --scale smoke --steps 30 --output {tmp_path}", capsys)
    assert code == 2 and "holds an experiment with steps 20, not 30" in printed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run e4 pydocs --scale tiny", "e4 has no scale 'tiny'"),
        (
            "run e4 pydocs --scale paper",
            "the paper scale of e4 is not run without a GPU: it needs about 781 hours of an A100",
        ),
        (
            "run e6 pydocs --scale paper",
            "the paper scale of e6 is not run without a GPU: it needs BERT-base as --encoder",
        ),
        ("run e4 pydocs --scale smoke --pretrain-time 5 --output x", "'5' is not a duration"),
        ("run e4 pydocs --steps 3 --pretrain-time 5m", "--steps and --pretrain-time contradict each other"),
        ("run e11 --pretrain-time 5m", "--pretrain-time is for e3, e4, e5, e6, e7, e8; e11 does not know it"),
        ("run e6 pydocs --scale smoke --encoder nowhere --output x", "no file or folder nowhere; give a run of weft"),
        ("show e5 --output nowhere", "nowhere does not exist"),
    ],
)
def test_bad_input_of_e4_to_e7_is_answered_with_a_sentence(words: str, said: str, capsys):
    code, printed = study(words, capsys)
    assert code == 2 and said in printed


@pytest.mark.slow
def test_a_source_without_text_is_refused(tmp_path: Path, capsys):
    code, printed = study(f"run e4 digits --scale smoke --output {tmp_path / 'e4'}", capsys)
    assert code == 2 and "digits" in printed and "text" in printed


def test_the_paper_scale_is_run_where_there_is_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys):
    monkeypatch.setattr(run_experiment, "has_gpu", lambda: True)
    monkeypatch.setattr(run_experiment, "open_pool", Mock(side_effect=WeftError("workers are started")))
    code, printed = study(f"run e4 pydocs --scale paper --output {tmp_path / 'e4'}", capsys)
    assert code == 2 and "workers are started" in printed
    assert run_experiment.open_pool.call_args.kwargs == {"gpu": True}
