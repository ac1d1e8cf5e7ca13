"""Several processes end as one does: a refusal is one sentence, and a run that never began leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from torch.distributed import run as torchrun
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

from training.runs import configure
from weft.errors import WeftError, WorkFailed
from weft.training.run import launch, ranks
from weft.training.storage.run_folder import create


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Any:
    """torchrun that ends as it is told, without starting anything."""
    monkeypatch.setenv(launch.REFUSAL, "")  # so that it is put back
    monkeypatch.setenv("LOGLEVEL", "CRITICAL")

    def use(ending: Any) -> None:
        monkeypatch.setattr(torchrun, "main", ending)

    return use


def refusing(words: list[str]) -> None:
    Path(os.environ[launch.REFUSAL]).write_text(json.dumps([2, "two lines\nof a sentence"]))


def test_a_refusal_is_said_once_and_leaves_no_trace(tmp_path: Path, ended: Any, capsys: Any) -> None:
    folder = tmp_path / "runs" / "new"
    create(folder, configure()).release()
    ended(refusing)
    assert ranks.main([str(folder), "2", "--standalone"]) == 2
    assert capsys.readouterr().err == "weft: two lines of a sentence\n"
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_was_there_before_is_kept(tmp_path: Path, ended: Any) -> None:
    create(tmp_path / "run", configure()).release()
    ended(refusing)
    assert ranks.main([str(tmp_path / "run"), "-"]) == 2
    assert (tmp_path / "run" / "run.yaml").is_file()


def test_a_process_that_dies_again_and_again_is_told_with_what_to_do(
    tmp_path: Path, ended: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(words: list[str]) -> None:
        raise ChildFailedError("weft", {1: SimpleNamespace(exitcode=-4, timestamp=0)})  # type: ignore[dict-item]

    ended(dying)
    monkeypatch.setattr(ChildFailedError, "format_msg", lambda *_: "")
    assert ranks.main([str(tmp_path / "run"), "-"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("weft: process 1 of the run ended by SIGILL") and "weft train --resume" in said


def test_a_signal_is_no_failure(tmp_path: Path, ended: Any, capsys: Any) -> None:
    def told_to_end(words: list[str]) -> None:
        raise SignalException("ended", 15)  # type: ignore[arg-type]

    ended(told_to_end)
    assert ranks.main([str(tmp_path / "run"), "-"]) == 130
    assert capsys.readouterr().err == ""


def test_a_rank_hands_in_its_first_sentence_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr(launch, "leave", lambda: left.append(0))
    launch.hand_in(WeftError("nobody has started this process"))
    launch.leave_if_refused()
    assert left == []
    monkeypatch.setenv(launch.REFUSAL, str(tmp_path / "refusal.json"))
    launch.hand_in(WorkFailed("the first"))
    launch.hand_in(WeftError("the second"))
    assert json.loads((tmp_path / "refusal.json").read_text()) == [1, "the first"]
    launch.leave_if_refused()
    assert left == [0, 0, 0]


@pytest.mark.slow
def test_a_time_too_short_for_two_processes_is_one_sentence(tmp_path: Path) -> None:
    words = ["train", "digits", "--model", "mlp", "--processes", "2", "--time", "1s", "--output", "runs/short"]
    ended = subprocess.run([sys.executable, "-m", "weft", *words], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith("weft: fewer than 10 steps of mlp") and ended.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
