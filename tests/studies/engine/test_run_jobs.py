"""How a list of runs ends, with workers that only say how theirs did: alike, held, interrupted, incomplete."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from studies.fabricated import make_study, record
from weft.disk import explained
from weft.errors import Interrupted, WeftError, WorkFailed
from weft.studies.engine import runner, tasks
from weft.studies.engine.folder_lock import concluded, require_complete
from weft.studies.engine.runner import Alike, Pool, run_jobs
from weft.studies.engine.study import Study, why_missing
from weft.studies.engine.worker import TaskFailed, WorkerDied, attempt

CANDIDATES = {"mlp": 0.9, "vit_nano_p4_32": 0.9, "mixer_nano_p4_32": 0.9, "resnet8_cifar": 0.9}


class Fake:
    """A worker whose answers come from a function of the run's folder."""

    def __init__(self, does: Callable[[Path], Any]) -> None:
        self.does = does
        self.connection, self.theirs = multiprocessing.Pipe()
        self.stopped = 0

    def ask(self, task: str, config: Any, path: Path, *_: Any, log: Path | None = None) -> None:
        self.path = path
        self.theirs.send("ended")

    def answer(self, timeout: float | None = None) -> Any:
        self.connection.recv()
        return self.does(self.path)

    def terminate(self) -> None:
        self.stopped += 1

    def join(self, patience: float) -> None:
        pass


def study_without_records(folder: Path, **candidates: float) -> Study:
    study = make_study(folder, candidates or CANDIDATES, seeds=2)
    for job in study.jobs:
        (study.run_folder(job).path / "record.json").unlink()
    return study


def pool_of(does: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch) -> Pool:
    made = Pool.__new__(Pool)
    made.cores, made.threads, made.workers = 1, 1, [Fake(does)]
    monkeypatch.setattr(runner, "Worker", lambda: Fake(does))
    return made


def raising(error: BaseException) -> Callable[..., Any]:
    def does(*_: Path) -> Any:
        raise error

    return does


def write_record(study: Study) -> Callable[[Path], str]:
    jobs = {job.name: job for job in study.jobs}

    def does(path: Path) -> str:
        study.run_folder(jobs[path.name]).write_record(record(jobs[path.name].config, 0.9))
        return "finished"

    return does


LARGE = TaskFailed("the batch is larger than the split", True, cause="WeftError at batches.py:7")


@pytest.mark.parametrize("error", [WorkerDied(-signal.SIGILL), LARGE])
def test_candidates_that_all_fail_alike_end_the_study_early(tmp_path: Path, monkeypatch, error: Exception):
    study = study_without_records(tmp_path)
    said: list[str] = []
    with pytest.raises(WorkFailed, match=r"first 3 runs \(.*mlp.*\) all failed alike; ") as failed:
        seed_by_seed = sorted(study.jobs, key=lambda job: job.seed)
        run_jobs(study, pool_of(raising(error), monkeypatch), seed_by_seed, said.append)
    assert failed.value.code == 1 and len(said) == 3
    assert ("SIGILL" if isinstance(error, WorkerDied) else "larger than the split") in str(failed.value)


@pytest.mark.parametrize("code", [-signal.SIGKILL, None])
def test_memory_and_other_reasons_that_differ_do_not(tmp_path: Path, monkeypatch, code: int | None):
    """The next candidate may need less."""
    study = study_without_records(tmp_path)

    def does(path: Path) -> Any:
        raise WorkerDied(code) if code is not None else TaskFailed("too deep", True, cause=path.name)

    run_jobs(study, pool_of(does, monkeypatch), study.jobs, lambda _: None)
    assert all(study.failure(job).is_file() for job in study.jobs)


def test_failures_are_alike_by_their_cause_and_not_by_their_sentence(tmp_path: Path, monkeypatch):
    """Sentences name paths."""
    study = study_without_records(tmp_path)
    console = os.dup(1), os.dup(2)

    def fill_the_disk(path: Path) -> None:
        with explained(path, path / "aside"):
            raise OSError(errno.ENOSPC, "No space left on device")

    def does(path: Path) -> None:
        kind, sentence, details, cause = attempt(fill_the_disk, (path,), None, console)
        raise TaskFailed(sentence, kind == "refused", details, cause)

    with pytest.raises(WorkFailed, match=r"3 runs .* failed alike; the last one failed: .*the disk is full"):
        run_jobs(study, pool_of(does, monkeypatch), sorted(study.jobs, key=lambda job: job.seed), lambda _: None)


def test_one_success_is_reason_to_go_on():
    alike = Alike(candidates=9, any_finished=True)
    for number in range(9):
        alike.note(str(number), "SIGILL", "failed")
    alike = Alike(candidates=2, any_finished=False)
    alike.note("a", "SIGILL", "failed")
    alike.note("b", "SIGILL", "failed")
    with pytest.raises(WorkFailed, match=r"\(a, b\)"):
        alike.note("a", "SIGILL", "failed")


def test_a_run_that_another_process_has_is_waited_for(tmp_path: Path, monkeypatch):
    study = study_without_records(tmp_path, mlp=0.9)
    finish, asked, said = write_record(study), [], []

    def does(path: Path) -> str:
        asked.append(path.name)
        return finish(path) if len(asked) > 3 else "held"

    run_jobs(study, pool_of(does, monkeypatch), study.jobs, said.append)
    assert all(study.finished(job) and not study.failure(job).exists() for job in study.jobs)
    assert sum("another process trains in" in line for line in said) == 2  # once a run, not once a look


def test_being_interrupted_saves_what_is_under_way(tmp_path: Path, monkeypatch):
    study = study_without_records(tmp_path)
    pool = pool_of(raising(KeyboardInterrupt()), monkeypatch)
    other = Fake(lambda _: "interrupted")
    other.ask = lambda *_, **__: None  # type: ignore[method-assign]  # still at work
    other.answer = lambda timeout: "interrupted"  # type: ignore[method-assign]
    pool.workers.append(other)  # type: ignore[arg-type]
    with pytest.raises(Interrupted, match="0 of 8 runs"):
        run_jobs(study, pool, study.jobs, lambda _: None)
    assert other.stopped == 1


class Answering:
    """A worker that answers with what it was asked for, or not at all."""

    def __init__(self, warm: bool = True, silent: bool = False) -> None:
        self.warm, self.silent, self.asked = warm, silent, list[Any]()

    def ask(self, task: object, *arguments: Any) -> None:
        self.asked.append(arguments)

    def answer(self, timeout: float | None = None) -> Any:
        if self.silent:
            raise TimeoutError
        return self.asked[-1]

    def terminate(self) -> None: ...

    def join(self, patience: float) -> None: ...


def answering(monkeypatch: pytest.MonkeyPatch, *workers: Answering) -> Pool:
    made = Pool.__new__(Pool)
    made.cores, made.threads, made.workers = 2, 1, list(workers)  # type: ignore[arg-type]
    monkeypatch.setattr(runner, "Worker", lambda: Answering(warm=False))
    return made


def test_a_process_that_replaces_another_opens_no_data_while_others_have_it_open(monkeypatch: pytest.MonkeyPatch):
    pool = answering(monkeypatch, dead := Answering(), warm := Answering())
    new: Any = pool.replace(dead)  # type: ignore[arg-type]
    assert pool.workers == [warm, new]
    pool.spread(tasks.inference_speed, ["one", "two", "three"])
    assert pool.first(tasks.look, "four") == ("four",)
    assert not new.asked and warm.asked == [("one",), ("two",), ("three",), ("four",)]
    pool.replace(warm)  # type: ignore[arg-type]
    assert pool.warm() == [] and pool.spread(tasks.inference_speed, ["five"]) == [] and new.asked == [("five",)]


def test_who_does_not_answer_in_the_time_that_it_has_is_replaced(monkeypatch: pytest.MonkeyPatch):
    pool = answering(monkeypatch, silent := Answering(silent=True), other := Answering())
    found = pool.each(tasks.pace, [("one",), ("two",)], within=0.1)
    assert str(found[0]) == "timing a step takes longer than there is time for; give more --time"
    assert found[1] == ("two",) and silent not in pool.workers and pool.workers[0] is other
    assert all("takes longer" in str(late) for late in pool.each(tasks.pace, [("three",)], within=0.0))
    assert other.asked == [("two",)], "it is not begun where the time is over"
    other.silent = True
    with pytest.raises(WeftError, match="embedding texts takes longer than there is time for"):
        pool.first(tasks.embed, "config", within=0.1)


def test_what_was_under_way_is_told(tmp_path: Path, monkeypatch):
    study = study_without_records(tmp_path, mlp=0.9)
    (study.run_folder(study.jobs[0]).path / ".lock").write_text("reading the data")
    run_jobs(study, pool_of(raising(WorkerDied(-signal.SIGSEGV)), monkeypatch), study.jobs, lambda _: None)
    assert "died while reading the data: SIGSEGV" in why_missing(tmp_path, study.jobs[0].name).reason


def test_a_study_is_shown_and_then_said_to_lack_a_run(tmp_path: Path):
    study = make_study(tmp_path, {"mlp": 0.9, "vit_nano_p4_32": 0.8})
    shown: list[Path] = []
    concluded(tmp_path, lambda: None, shown.append)
    (study.run_folder(study.jobs[1]).path / "record.json").unlink()
    study.record_failure(study.jobs[1], "its process died: SIGILL")
    with pytest.raises(WorkFailed, match=r"1 of 6 runs .* mlp, seed 1: .* SIGILL") as failed:
        concluded(tmp_path, lambda: None, shown.append)
    assert failed.value.code == 1 and shown == [tmp_path, tmp_path]
    with pytest.raises(WorkFailed, match="all alike"):
        concluded(tmp_path, raising(WorkFailed("all alike")), shown.append)
    assert len(shown) == 3


def test_what_an_interrupted_study_has_finished_is_shown_and_it_still_ends_as_interrupted(tmp_path: Path):
    study, shown = make_study(tmp_path, {"mlp": 0.9, "vit_nano_p4_32": 0.8}), list[Path]()
    (study.run_folder(study.jobs[1]).path / "record.json").unlink()
    with pytest.raises(Interrupted, match="the same command goes on") as stopped:
        concluded(tmp_path, raising(Interrupted("interrupted: the same command goes on")), shown.append)
    assert stopped.value.code == 130 and shown == [tmp_path]
    with pytest.raises(Interrupted):
        concluded(tmp_path, raising(Interrupted("interrupted")), raising(WeftError("no result can be drawn")))


def test_a_study_without_any_result_is_not_shown(tmp_path: Path):
    study_without_records(tmp_path)
    with pytest.raises(WorkFailed, match=r"8 of 8 runs .* not run yet"):
        concluded(tmp_path, lambda: None, raising(AssertionError()))


def test_a_run_that_diverged_has_failed_but_is_an_answer_of_a_map(tmp_path: Path):
    study = make_study(tmp_path, {"mlp": 0.9})
    folder = study.run_folder(study.jobs[0])
    folder.write_record(record(study.jobs[0].config, 0.1, status="failed", reason="step 8: training diverged"))
    with pytest.raises(WorkFailed, match="step 8: training diverged"):
        require_complete(tmp_path)
    require_complete(tmp_path, ("finished", "failed"))
