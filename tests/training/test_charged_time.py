"""What `--time` counts: what is made once for all runs is not charged to the run that happens to be the first, and all
else is, from the command on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from data.made import encoded
from training import encoders, runs
from weft.data.batch import stores
from weft.errors import WeftError
from weft.training.config import DurationConfig
from weft.training.embeddings import store as embeddings
from weft.training.loop.display import Silent
from weft.training.run import launch, lifecycle, probe
from weft.training.run.distributed import SingleProcess
from weft.training.storage.run_folder import create

BEGAN = 1000.0


class Measured(Exception):
    """The moment at which a run would be measured."""


class Clock:
    """A clock that is moved by a call of `work` alone, by 500 s each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: Any, work: str) -> None:
        self.now, self.calls = BEGAN, 0
        original = getattr(module, work)

        def slow(*arguments: Any) -> Any:
            self.calls += 1
            self.now += 500.0
            return original(*arguments)

        def measure(run: Any, started: float, *_: Any) -> None:
            raise Measured(f"{self.now - started:.0f} s of the time have passed")

        monkeypatch.setattr(time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(module, work, slow)
        monkeypatch.setattr(probe, "measure", measure)


@pytest.fixture(autouse=True)
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))


def begin(config: Any, folder: Path, clock: Clock, spent: float = 3.0) -> None:
    """Start a run whose command was called some seconds ago, which are charged, and nothing else."""
    config = lifecycle.replace(config, duration=DurationConfig(time="60s"))
    with pytest.raises(Measured, match=f"^{spent:.0f} s of the time"):
        lifecycle.start(config, folder, Silent(), began=clock.now - 3.0)


def test_decoding_images_is_not_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cat", "dog"):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(20):
            (tmp_path / "images" / name / f"{number:02d}.png").write_bytes(encoded(number))
    clock = Clock(monkeypatch, stores, "decode_all")
    config = lifecycle.replace(runs.configure(batch_size=8), source=str(tmp_path / "images"))
    begin(config, tmp_path / "first", clock)
    assert clock.calls == 1
    begin(config, tmp_path / "second", clock)
    assert clock.calls == 1


def test_a_frozen_encoder_s_embeddings_are_not_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = encoders.make_encoder(tmp_path / "encoder")
    clock = Clock(monkeypatch, embeddings, "compute")
    config = encoders.configure(folder, frozen=True, model="mixer_text_tiny")
    begin(config, tmp_path / "first", clock)
    assert clock.calls == 1
    begin(config, tmp_path / "second", clock)
    assert clock.calls == 1


def test_arrays_are_resized_by_every_run_once_and_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are kept in memory alone; where their statistics are still to be made, resizing is a part of that."""
    clock = Clock(monkeypatch, stores, "decode_all")
    config = lifecycle.replace(runs.configure(), transform=lifecycle.replace(runs.configure().transform, img_size=12))
    begin(config, tmp_path / "first", clock)
    begin(config, tmp_path / "second", clock, spent=503.0)
    assert clock.calls == 2


def test_the_time_of_several_processes_counts_from_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose counter need not begin where those of its ranks do."""
    given: dict[str, str] = {}
    monkeypatch.setattr(launch.os, "execve", lambda path, command, environment: given.update(environment))
    monkeypatch.setattr(time, "time", lambda: 5000.0)
    monkeypatch.setattr(time, "perf_counter", lambda: 70.0)
    launch.launch(tmp_path / "run", 2, [], began=68.0)
    monkeypatch.setenv(launch.BEGAN, given[launch.BEGAN])
    Clock(monkeypatch, stores, "decode_all")
    monkeypatch.setattr(time, "time", lambda: 5009.0)  # they took nine seconds to start
    create(tmp_path / "run", lifecycle.replace(runs.configure(), duration=DurationConfig(time="60s"))).release()
    with pytest.raises(Measured, match=r"^11 s of the time"):
        lifecycle.resume(tmp_path / "run", Silent(), began=launch.launched())
    monkeypatch.delenv(launch.BEGAN)
    assert launch.launched() is None


@pytest.mark.parametrize("after", [1, 3, 4])  # after a step of two examples, after one of four, after the whole probe
def test_ranks_refuse_a_time_together(after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that went on alone would wait for the others forever."""
    asked: list[bool] = []

    def anyone(self: SingleProcess, flag: bool) -> bool:
        asked.append(flag)
        return len(asked) > after  # another rank is slower

    monkeypatch.setattr(SingleProcess, "anyone", anyone)
    monkeypatch.setattr(probe, "mean_step", lambda *_, **__: 0.01)
    monkeypatch.setattr(probe, "evaluation_seconds", lambda *_: 0.01)
    config = lifecycle.replace(runs.configure(), duration=DurationConfig(time="600s"))
    with pytest.raises(WeftError, match="too few steps"):
        lifecycle.start(config, tmp_path / "run", Silent())
    assert asked == [False] * (after + 1)


@pytest.mark.parametrize(("each", "made", "said"), [(7.0, [2, 2], r"(8[4-9]|9\d)"), (40.0, [2], r"4[4-9]\d")])
def test_a_step_that_takes_too_long_is_not_repeated(
    each: float, made: list[int], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But once, if there is time, as the first may be slow for reasons of its own. The refusal says what would do."""
    steps: list[int] = []

    def slow(run: Any, batch: Any, *_: Any) -> None:
        steps.append(len(batch.index))
        passed[0] += each

    passed, now = [0.0], time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: now() + passed[0])
    monkeypatch.setattr(probe, "update", slow)
    config = lifecycle.replace(runs.configure(), duration=DurationConfig(time="60s"))
    with pytest.raises(WeftError, match=rf"of 8 px fit into --time 60s.*; give at least {said}s, .*or count in"):
        lifecycle.start(config, tmp_path / "run", Silent())
    assert steps == made


def test_ranks_go_by_the_clock_of_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which alone knows what was made once for all runs."""
    Clock(monkeypatch, stores, "decode_all")
    monkeypatch.setattr(SingleProcess, "share", lambda self, value: 2.0 if isinstance(value, float) else value)
    config = lifecycle.replace(runs.configure(), duration=DurationConfig(time="60s"))
    with pytest.raises(Measured, match=r"^2 s of the time"):
        lifecycle.start(config, tmp_path / "run", Silent(), began=time.perf_counter() - 30)


@pytest.mark.parametrize(("asked", "refused"), [("100s", True), ("140s", False)])
def test_a_time_that_goes_into_the_last_evaluations_is_refused(
    asked: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evaluations of 40 s, twice, may take 20 s more than that: steps of 10 ms for 15 s could not make up for it."""
    monkeypatch.setattr(probe, "mean_step", lambda *_, **__: 0.01)
    monkeypatch.setattr(probe, "evaluation_seconds", lambda *_: 40.0)
    monkeypatch.setattr(probe, "last_evaluations", lambda *_: 1.0)
    monkeypatch.setattr(lifecycle, "train_and_record", lambda *_: "trained")
    config = lifecycle.replace(runs.configure(), duration=DurationConfig(time=asked))
    if refused:
        with pytest.raises(WeftError, match=r"evaluations take 8\d s\); give at least 1\d\ds, .*--test-rows"):
            lifecycle.start(config, tmp_path / "run", Silent())
    else:
        assert lifecycle.start(config, tmp_path / "run", Silent()) == "trained"
