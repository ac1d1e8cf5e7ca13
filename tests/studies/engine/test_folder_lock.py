"""One process drives a study, whoever is second is refused, and being stopped is a sentence with its exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from studies.fabricated import asked
from weft import machine
from weft.errors import Interrupted, WeftError
from weft.studies.compare.comparison import compare
from weft.studies.engine import folder_lock
from weft.studies.experiments.e11_training_issues import run_claims
from weft.training.storage.checkpoints import CheckpointStore


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_lock, "GRACE", 0.1)


def test_the_second_in_a_folder_is_refused_and_touches_nothing(tmp_path: Path, impatient: None):
    with folder_lock.held(tmp_path / "study"):
        for begin in (lambda f: compare(asked(), f, "", print), lambda f: run_claims(f, "digits", 1, 1, "", print)):
            with pytest.raises(WeftError, match=f"another process is at work in {tmp_path / 'study'}") as refused:
                begin(tmp_path / "study")
            assert refused.value.code == 2
        assert {path.name for path in (tmp_path / "study").iterdir()} == {folder_lock.LOCK, folder_lock.MARK}


def test_where_nothing_came_of_it_nothing_is_left(tmp_path: Path):
    with pytest.raises(ZeroDivisionError), folder_lock.driving(tmp_path / "comparisons" / "study"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    with folder_lock.driving(tmp_path / "mine"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_what_was_written_stays_and_the_folder_can_be_driven_again(tmp_path: Path):
    for number in range(2):
        with folder_lock.driving(tmp_path / "study"):
            (tmp_path / "study" / str(number)).touch()
    assert {path.name for path in (tmp_path / "study").iterdir()} == {folder_lock.LOCK, folder_lock.MARK, "0", "1"}


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(WeftError, match="cannot write to"), folder_lock.held(tmp_path / "file" / "study"):
        pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_being_stopped_says_how_to_go_on(tmp_path: Path, number: signal.Signals):
    before = signal.getsignal(number)
    with (
        pytest.raises(Interrupted, match="the same command goes on") as stopped,
        folder_lock.driving(tmp_path / "study"),
    ):
        (tmp_path / "study" / "study.json").touch()
        signal.raise_signal(number)
        time.sleep(1)
    assert stopped.value.code == 130
    assert signal.getsignal(number) == before


def test_being_stopped_before_anything_was_written_names_no_folder(tmp_path: Path):
    with (
        pytest.raises(Interrupted, match="before anything was finished; the same command begins again") as stopped,
        folder_lock.driving(tmp_path / "study"),
    ):
        raise KeyboardInterrupt
    assert str(tmp_path) not in str(stopped.value) and list(tmp_path.iterdir()) == []


def test_a_study_that_ignores_the_end_of_its_terminal_goes_on(tmp_path: Path):
    """As nohup has it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with folder_lock.driving(tmp_path / "study"):
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_ctrl_c_saves_the_runs_under_way_and_leaves_no_process(tmp_path: Path):
    words = "compare digits --models mlp --amount 10k --seeds 1 --steps 100000 --no-controls --no-baseline --jobs 1"
    words += " --no-compile --precision float32"
    process = subprocess.Popen(
        [sys.executable, "-m", "weft", *words.split(), "--output", str(tmp_path / "study")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a process group of its own, as a terminal has it
    )
    until = time.monotonic() + 600  # a busy machine
    while not any(curve.stat().st_size for curve in tmp_path.glob("study/runs/*/metrics.jsonl")):  # steps were made
        assert time.monotonic() < until
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=60)  # ends when no worker holds the pipe any more
    assert process.returncode == 130
    assert error.startswith("weft: interrupted; 0 of 1 runs are finished") and error.count("\n") == 1
    (run,) = tmp_path.glob("study/runs/*")
    assert CheckpointStore(run / "checkpoints").steps()[-1] > 0
    machine.Lock(run / ".lock").acquire().release()
