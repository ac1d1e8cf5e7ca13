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
    (Path(os.environ[launch.REFUSAL]) / "0.json").write_text(json.dumps([2, "two lines\nof a sentence"]))


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


def test_a_refusal_that_cannot_be_read_is_no_success(tmp_path: Path, ended: Any, capsys: Any) -> None:
    ended(lambda words: (Path(os.environ[launch.REFUSAL]) / "1.json").touch())
    assert ranks.main([str(tmp_path / "run"), "-"]) == 1
    assert "see that the disk has room" in capsys.readouterr().err


def test_a_run_that_another_process_has_taken_up_is_not_discarded(tmp_path: Path, ended: Any) -> None:
    other = create(tmp_path / "run", configure())
    ended(refusing)
    assert ranks.main([str(tmp_path / "run"), "1"]) == 2
    assert (tmp_path / "run" / "run.yaml").is_file()
    other.release()


def test_a_signal_is_no_failure(tmp_path: Path, ended: Any, capsys: Any) -> None:
    def told_to_end(words: list[str]) -> None:
        raise SignalException("ended", 15)  # type: ignore[arg-type]

    ended(told_to_end)
    assert ranks.main([str(tmp_path / "my run"), "-"]) == 130
    assert capsys.readouterr().err == f"weft: interrupted; continue with: weft train --resume '{tmp_path / 'my run'}'\n"


@pytest.mark.parametrize(("world", "code"), [("1", 0), ("2", 1)])
def test_a_rank_hands_in_its_sentence_and_ends(
    world: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 0 where all do, with 1 where others go on, and would wait for it."""
    left: list[int] = []
    monkeypatch.setattr(launch, "leave", left.append)
    monkeypatch.setattr(launch, "TOGETHER", 0.1)
    monkeypatch.delenv(launch.REFUSAL, raising=False)
    launch.hand_in(WeftError("nobody has started this process"))
    launch.leave_if_refused()
    assert left == []
    for name, value in {launch.REFUSAL: str(tmp_path), "RANK": "0", "WORLD_SIZE": world}.items():
        monkeypatch.setenv(name, value)
    launch.leave_if_refused()
    assert left == []
    launch.hand_in(WorkFailed("a sentence"))
    assert json.loads((tmp_path / "0.json").read_text()) == [1, "a sentence"] and left == [code]
    launch.leave_if_refused()
    assert left == [code, 0]


@pytest.mark.slow
def test_a_time_too_short_for_two_processes_is_one_sentence(tmp_path: Path) -> None:
    words = ["train", "digits", "--model", "mlp", "--processes", "2", "--time", "1s", "--output", "runs/short"]
    ended = subprocess.run([sys.executable, "-m", "weft", *words], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith("weft: too few steps of mlp") and ended.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
