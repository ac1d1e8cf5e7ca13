"""Workers end with their study, whatever they are doing; what they refuse is said once."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from weft.errors import WeftError
from weft.studies.engine import worker
from weft.studies.engine.worker import WorkerDied, attempt

STUDY = """
import multiprocessing, os, signal, sys, time
from pathlib import Path
from weft import disk
from weft.studies.engine.worker import listen, undisturbed

def stubborn(folder, writing):
    listen()
    signal.signal(signal.SIGTERM, lambda *_: (folder / "asked").touch())
    with disk.explained(folder / "x", folder / "y") if writing else open(os.devnull):
        (folder / "ready").write_text(str(os.getpid()))
        until = time.monotonic() + (1.5 if writing else 20)
        while time.monotonic() < until:  # in which there is no next step
            time.sleep(0.01)
        (folder / "written").touch()
    time.sleep(60)

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=stubborn, args=(Path(sys.argv[1]), bool(sys.argv[2])))
    with undisturbed():
        process.start()
    while not (Path(sys.argv[1]) / "ready").exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("writing", ["", "yes"])
def test_a_worker_whose_study_died_ends_within_a_second_but_not_in_the_middle_of_a_write(tmp_path: Path, writing: str):
    (tmp_path / "study.py").write_text(STUDY)
    command = [sys.executable, str(tmp_path / "study.py"), str(tmp_path), writing]
    subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # until the worker closes the pipe too
    assert time.time() - (tmp_path / "ready").stat().st_mtime < 10  # a second, on a machine that has nothing else to do
    assert (tmp_path / "asked").exists()
    assert (tmp_path / "written").exists() == bool(writing)


def test_noticing_and_ending_have_half_of_the_second_in_which_a_worker_ends(monkeypatch: pytest.MonkeyPatch):
    slept: list[float] = []
    monkeypatch.setattr(worker.multiprocessing, "parent_process", lambda: SimpleNamespace(sentinel=0))
    monkeypatch.setattr(worker, "wait", lambda _: [])
    monkeypatch.setattr(worker.signal, "raise_signal", lambda _: None)
    monkeypatch.setattr(worker.time, "sleep", slept.append)
    monkeypatch.setattr(worker.os, "_exit", lambda _: None)
    worker.end_with_study()
    assert 0.2 <= sum(slept) <= 0.5


def test_a_worker_begins_with_no_module_that_lies_beside_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "socket.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    started = worker.Worker()
    assert started.call(os.getpid) != os.getpid()
    started.terminate()
    started.join(10)
    assert not (tmp_path / "ran").exists()


def test_a_refusal_is_left_to_the_study_to_say(capfd: pytest.CaptureFixture[str]):
    def refuse() -> None:
        raise WeftError("no such source")

    console = os.dup(1), os.dup(2)
    assert attempt(refuse, (), None, console)[:3] == ("refused", "no such source", "")
    assert capfd.readouterr() == ("", "")


def test_a_fault_keeps_its_traceback_for_those_who_ask(capfd: pytest.CaptureFixture[str], tmp_path: Path):
    console = os.dup(1), os.dup(2)
    kind, told, details, _ = attempt(lambda: {}["x"], (), None, console)
    assert (kind, told) == ("failed", "KeyError: 'x'") and "Traceback" in details
    assert capfd.readouterr() == ("", "")
    (tmp_path / "file").touch()
    assert attempt(lambda: 1, (), tmp_path / "file" / "log.txt", console)[0] == "failed"  # no log, no work


def test_a_cause_is_what_is_raised_where_and_no_lack_of_memory(tmp_path: Path):
    def cause(function: Callable[..., object], *arguments: object) -> str:
        return attempt(function, arguments, None, (os.dup(1), os.dup(2)))[3]

    def refuse(sentence: str) -> None:
        raise WeftError(sentence)

    def lack(error: Exception) -> None:
        raise WeftError("it does not fit") from error

    assert cause(refuse, "a") == cause(refuse, "b") != cause(lack, ValueError()) != ""
    assert cause((tmp_path / "a").read_text) == cause((tmp_path / "b").read_bytes) == "ENOENT"
    for error in (MemoryError(), OSError(errno.ENOMEM, ""), RuntimeError("can't allocate memory")):
        assert cause(lack, error) == ""


def test_a_death_is_named_with_its_remedy():
    assert "SIGILL" in str(WorkerDied(-signal.SIGILL)) and "weft doctor" in str(WorkerDied(-signal.SIGILL))
    assert "exit code 3" in str(WorkerDied(3))
