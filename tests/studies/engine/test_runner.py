"""Workers: a crash costs one task, a schedule is chosen by the clock, a seconds budget never shares the machine."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from studies.fabricated import asked
from weft.errors import WeftError
from weft.studies.compare import comparison
from weft.studies.compare.candidates import make_candidates
from weft.studies.compare.comparison import plan_comparison
from weft.studies.compare.run_configs import run_config
from weft.studies.engine import place, tasks
from weft.studies.engine.runner import Pool, TooLate, choose_schedule, run_jobs
from weft.studies.engine.worker import TaskFailed, Worker, WorkerDied
from weft.training.config import ExecutionConfig

pytestmark = pytest.mark.usefixtures("quick_workers")


@pytest.fixture(scope="module")
def pool(quick_workers: None):
    with Pool(1) as made:
        yield made


def test_a_refusal_of_a_worker_is_the_sentence_that_it_would_be_here(pool: Pool):
    with pytest.raises(WeftError, match="there is no source 'nowhere'"):
        pool.first(tasks.look, run_config(asked(source="nowhere"), None, 0, 1))


def test_a_worker_that_is_killed_is_noticed():
    worker = Worker()
    worker.call(os.getpid)
    worker.ask(tasks.look, run_config(asked(), None, 0, 1))
    os.kill(worker.process.pid, signal.SIGKILL)
    with pytest.raises(WorkerDied, match=r"SIGKILL .* memory"):
        worker.answer()


def test_a_fault_in_a_task_is_told_and_the_worker_lives(pool: Pool, tmp_path: Path):
    with pytest.raises(TaskFailed, match="is not a run folder"):
        pool.workers[0].call(tasks.inference_speed, tmp_path, log=tmp_path / "log.txt")
    assert (tmp_path / "log.txt").read_text()
    assert pool.workers[0].call(os.getpid) == pool.workers[0].process.pid


def test_a_run_that_takes_its_process_with_it_is_written_down_and_the_others_go_on(tmp_path: Path):
    question = asked(models="mlp", seeds=2, baseline=False, steps=1000)
    with Pool(1) as pool:
        facts = pool.first(tasks.look, run_config(question, None, 0, 1))
        candidates = make_candidates(facts, "mlp", "params", 1e4, False, False)
        study = plan_comparison(question, tmp_path, "", facts, candidates)
        victim = pool.workers[0].process.pid

        def kill_when_training() -> None:
            while not (study.run_folder(study.jobs[0]).path / "metrics.jsonl").exists():
                time.sleep(0.02)
            os.kill(victim, signal.SIGKILL)

        thread = threading.Thread(target=kill_when_training)
        thread.start()
        run_jobs(study, pool, study.jobs, lambda sentence: None)
        thread.join()
    assert not study.done(study.jobs[0]) and study.failure(study.jobs[0]).is_file()
    assert study.finished(study.jobs[1])


def test_every_worker_opens_what_it_will_read_at_the_same_time():
    class Fake:
        def ask(self, task: object, *arguments: object) -> None:
            begun.append(self)

        def answer(self, timeout: float | None) -> str:
            assert len(begun) == 2, "nobody waits for the other"
            if refused:
                raise TaskFailed("there is no such source", True)
            return "facts"

    begun: list[Fake] = []
    refused: list[bool] = []
    pool = Pool.__new__(Pool)
    pool.workers = [Fake(), Fake()]  # type: ignore[list-item]
    assert pool.everyone(tasks.look, "asked") == "facts" and begun == pool.workers
    begun.clear()
    refused.append(True)
    with pytest.raises(WeftError, match="there is no such source"):
        pool.everyone(tasks.look, "asked")


def test_what_every_worker_is_asked_ends_in_time():
    class Slow:
        def ask(self, task: object, *arguments: object) -> None: ...

        def answer(self, timeout: float | None) -> str:
            assert timeout is not None and timeout <= 5
            raise TimeoutError

        def join(self, patience: float) -> None: ...

    pool = Pool.__new__(Pool)
    pool.workers = [Slow(), Slow()]  # type: ignore[list-item]
    pool.replace = lambda worker: worker  # type: ignore[method-assign]
    with pytest.raises(TooLate, match="looking at the data takes longer than there is time for"):
        pool.everyone(tasks.look, "asked", within=5)


def test_the_schedule_that_the_clock_prefers_is_chosen(monkeypatch: pytest.MonkeyPatch):
    class Fake:
        def __init__(self) -> None:
            self.stopped = False

        def terminate(self) -> None:
            self.stopped = True

        def join(self, patience: float) -> None:
            assert self.stopped

    def pool_with(alone: float, beside: float) -> Pool:
        made = Pool.__new__(Pool)
        made.cores, made.threads, made.workers = 2, 1, [Fake(), Fake()]
        monkeypatch.setattr("weft.studies.engine.runner.timed_together", lambda *_: [beside, beside])
        monkeypatch.setattr(Pool, "first", lambda *_: alone)
        choose_schedule(made, [run_config(asked(), None, 0, 100)], lambda sentence: None)
        return made

    assert len(pool_with(alone=1.0, beside=1.5).workers) == 2  # two steps in 1.5 s beat one in 1.0 s
    slower = pool_with(alone=1.0, beside=2.5)
    assert len(slower.workers) == 1 and slower.threads == 2


def test_on_a_gpu_there_is_one_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    sizes: list[int | None] = []

    class Stop(Exception):
        pass

    def fake(size: int | None = None) -> Pool:
        sizes.append(size)
        raise Stop

    monkeypatch.setattr(place, "Pool", fake)
    for question in (asked(execution=ExecutionConfig(device="cuda"), jobs=2), asked(jobs=2)):
        with pytest.raises(Stop):
            comparison.compare(question, tmp_path, "", print)
    assert sizes == [1, 2]
