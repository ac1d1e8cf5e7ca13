"""The share of the workers' time that went into training, by which minutes of further runs are told."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from studies.fabricated import make_study
from weft.studies.engine import worker_time
from weft.studies.engine.study import Study
from weft.studies.engine.worker_time import FILE, noting_worker_time, trained_share, worker_seconds


def logged(study: Study) -> None:
    for job in study.jobs:
        study.log(job).parent.mkdir(exist_ok=True)
        study.log(job).write_text("")


def test_the_share_is_of_all_sessions_and_all_runs(tmp_path: Path):
    """Runs of 3 s each on two workers: twenty seconds of one session, then ten of another, of which runs have six."""
    study = make_study(tmp_path, {"mlp": 0.9}, seeds=2)
    logged(study)
    for seconds in (20.0, 10.0):
        with noting_worker_time(tmp_path, time.perf_counter() - seconds, lambda: 2):
            pass
    assert worker_seconds(tmp_path) == pytest.approx(60.0, abs=1.0)
    assert trained_share(tmp_path) == pytest.approx(6 / 60, rel=0.02)


def test_the_share_is_known_while_a_session_is_under_way_and_after_it_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(worker_time, "NOTED", 0.01)
    logged(make_study(tmp_path, {"mlp": 0.9}, seeds=2))
    until = time.monotonic() + 60
    with pytest.raises(KeyboardInterrupt), noting_worker_time(tmp_path, time.perf_counter() - 12, lambda: 1):
        while not (tmp_path / FILE).is_file():
            assert time.monotonic() < until
            time.sleep(0.01)
        assert trained_share(tmp_path) == pytest.approx(0.5, rel=0.1)
        raise KeyboardInterrupt
    assert trained_share(tmp_path) == pytest.approx(0.5, rel=0.1)


def test_runs_that_were_taken_over_took_no_time_here(tmp_path: Path):
    study = make_study(tmp_path, {"mlp": 0.9}, seeds=4)
    logged(study)
    study.log(study.jobs[0]).unlink()
    (tmp_path / FILE).write_text(json.dumps({"seconds": 18.0}))
    assert trained_share(tmp_path) == pytest.approx(0.5)


@pytest.mark.parametrize("content", ["{", "{}", '{"seconds": 0}'])
def test_where_the_time_is_not_known_no_share_is_told(tmp_path: Path, content: str):
    logged(make_study(tmp_path, {"mlp": 0.9}))
    assert trained_share(tmp_path) is None
    (tmp_path / FILE).write_text(content)
    assert trained_share(tmp_path) is None


def test_nothing_is_left_in_a_folder_without_runs(tmp_path: Path):
    with noting_worker_time(tmp_path, time.perf_counter() - 9, lambda: 2):
        pass
    assert not list(tmp_path.iterdir())
