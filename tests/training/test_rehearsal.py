"""What is merely tried cannot end a run: it is tried in a process of its own, once a machine, and remembered."""

from __future__ import annotations

import dataclasses
import errno
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from crashing_machine import environment
from training.runs import configure, train
from weft import machine
from weft.data.batch.loader import Batch
from weft.errors import WeftError
from weft.networks.registry import create_model
from weft.training.config import DurationConfig
from weft.training.loop.display import Silent
from weft.training.run import lifecycle, memory, probe, rehearsal
from weft.training.run.context import Run
from weft.training.run.distributed import SingleProcess
from weft.training.run.rehearsal import Answer


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache: nothing has been tried on this machine."""
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def become(how: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every child process one of a machine whose narrow formats crash, hang or compute zeros."""
    for name, value in environment(folder, how).items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("how", "why"),
    [("crash", "SIGILL"), ("hang", "did not answer within 4 s"), ("wrong", "differ from those of float32")],
)
def test_a_format_that_crashes_hangs_or_lies_is_not_used_and_the_record_says_so(
    how: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    become(how, tmp_path, monkeypatch)
    monkeypatch.setitem(rehearsal.LIMITS, "format", 60.0 if how != "hang" else 4.0)
    monkeypatch.setattr(probe, "TRY_FORMATS", 0.0)
    monkeypatch.setattr(probe, "NARROW", ("bf16",))
    record = train(configure(steps=3, precision="auto"), tmp_path / "run")
    assert record["status"] == "finished" and record["plan"]["precision"] == "float32"
    (sentence,) = record["plan"]["tried"]
    assert "bf16" in sentence and why in sentence
    monkeypatch.setattr(rehearsal, "child", lambda *_: pytest.fail("it was tried before on this machine"))
    assert train(configure(steps=3, precision="auto", seed=1), tmp_path / "again")["plan"]["tried"] == [sentence]


def test_a_format_that_was_asked_for_and_crashes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    become("crash", tmp_path, monkeypatch)
    with pytest.raises(WeftError, match=r"bf16 .*SIGILL.*--precision float32"):
        lifecycle.start(configure(steps=3, precision="bf16"), tmp_path / "run", Silent())


def test_a_short_run_tries_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "ask", lambda *_, **__: pytest.fail("too short to gain"))
    assert train(configure(steps=3, precision="auto", compile=None), tmp_path / "run")["plan"]["tried"] == []


def test_answers_hold_for_one_kind_of_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def child(words: list[str], limit: float) -> Answer:
        asked.append(words)
        return Answer(True, ratio=0.5)

    monkeypatch.setattr(rehearsal, "child", child)
    assert rehearsal.try_format("bf16") == rehearsal.try_format("bf16") == Answer(True, ratio=0.5)
    assert len(asked) == 1
    monkeypatch.setattr(rehearsal.machine, "cpu_flags", lambda: ("another",))
    rehearsal.try_format("bf16")
    assert len(asked) == 2


@pytest.mark.parametrize("name", ["ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY"])
def test_answers_hold_for_the_instructions_that_the_environment_allows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What works without AMX may be an illegal instruction with it."""
    monkeypatch.setenv(name, "avx2")
    monkeypatch.setattr(rehearsal, "child", lambda *_: Answer(True))
    assert rehearsal.try_format("bf16").works
    monkeypatch.delenv(name)
    monkeypatch.setattr(rehearsal, "child", lambda *_: Answer(False, why="SIGILL"))
    assert not rehearsal.try_format("bf16").works


def test_convolutions_are_tried_for_networks_that_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patches do not overlap: a network of them needs no other layers than products."""
    asked: list[list[str]] = []
    monkeypatch.setattr(rehearsal, "ask", lambda words, *_, **__: asked.append(words) or Answer(True))
    for name in ("vit_pico_p4_32", "resnet18"):
        rehearsal.try_format("bf16", net=create_model(name))
    assert ["strides" in words for words in asked] == [False, True]


def test_gradients_that_are_left_unwritten_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As some processors leave those of small maps in bf16; where fresh memory cannot be spoilt, it holds the right
    numbers now and then."""
    honest, luck = rehearsal.shrink, iter([True, True])
    monkeypatch.setattr(machine, "spoil_fresh_memory", lambda: False)

    def spoilt(device: torch.device, kind: torch.dtype | None) -> Tensor:
        gradients = honest(device, None)
        if kind is None or next(luck, False):
            return gradients
        return gradients.masked_fill(torch.arange(len(gradients)) % 9 == 0, torch.nan)

    monkeypatch.setattr(rehearsal, "exercise", lambda device, kind: torch.ones(3))
    monkeypatch.setattr(rehearsal, "shrink", spoilt)
    cpu = torch.device("cpu")
    assert "stride" in rehearsal.format_answer("bf16", cpu, strides=True).why
    monkeypatch.setattr(rehearsal, "product", lambda kind, device: 1.0)
    assert rehearsal.format_answer("bf16", cpu, strides=False).works


def test_an_answer_of_another_way_of_trying_is_asked_for_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier trial that did not look closely enough may have called a format sound."""
    monkeypatch.setattr(rehearsal, "child", lambda *_: Answer(True))
    assert rehearsal.try_format("bf16").works
    monkeypatch.setattr(rehearsal, "child", lambda *_: Answer(False, why="seen now"))
    assert rehearsal.try_format("bf16").works
    monkeypatch.setattr(rehearsal, "WAY", rehearsal.WAY + 1)
    assert rehearsal.try_format("bf16").why == "seen now"


@pytest.mark.parametrize("code", [-9, -15, 1])
def test_a_trial_that_somebody_ended_is_tried_again(code: int, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "child", lambda *_: rehearsal.reply(code, "", "no such file"))
    assert not rehearsal.try_format("bf16").works
    assert not list(cache.glob("*"))


DAMAGED = ["3", "{}", "null", '{"works": true, "more": 1}', '{"works": true, "ratio": "x"}',
           '{"works": true, "ratio": NaN}', '{"works": "perhaps"}']  # fmt: skip


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", *(f'{{"answer": {answer}}}' for answer in DAMAGED)])
def test_a_damaged_answer_is_asked_for_again(content: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "child", lambda *_: Answer(False, why="no"))
    rehearsal.try_format("fp16")
    (stored,) = cache.glob("*.json")
    stored.write_text(content)
    assert not rehearsal.remembered()
    assert rehearsal.try_format("fp16").why == "no"


@pytest.mark.parametrize("lacking", ["subprocess.Popen", "tempfile.TemporaryFile"])
def test_where_no_process_can_be_started_that_is_an_answer_of_the_moment(
    lacking: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, "no more of them")

    monkeypatch.setattr(f"weft.training.run.rehearsal.{lacking}", refuse)
    answer = rehearsal.try_format("bf16")
    assert not answer.works and not answer.lasting and "no more of them" in answer.why
    assert not list(cache.glob("*"))


def test_a_trial_runs_no_module_that_lies_beside_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("random", "signal", "torch"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('of the data')")
    monkeypatch.chdir(tmp_path)
    assert "of the data" not in rehearsal.child(["format", "bf16", "cpu"], 60.0).why


def test_a_trial_whose_parent_is_gone_ends_at_once() -> None:
    words = [sys.executable, "-P", "-m", "weft.training.run.trial", str(os.getpid() + 1), "format", "bf16", "cpu"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_steps_are_timed_in_another_process_and_nothing_is_left_in_the_folder(tmp_path: Path) -> None:
    lifecycle.start(configure("vit", steps=2), tmp_path / "run", Silent())
    before = sorted(tmp_path.joinpath("run").rglob("*"))
    answer = rehearsal.try_steps(tmp_path / "run", "float32", False, "cpu", 1, "shape")
    assert answer.works, answer.why
    assert 0.2 < answer.ratio < 5, "the same form against itself"
    assert sorted(tmp_path.joinpath("run").rglob("*")) == before


@pytest.mark.parametrize(
    ("precision", "compiled", "ratio"), [("bf16", False, 0.5), ("bf16", True, 0.8), ("float32", True, 0.7)]
)
def test_a_form_is_timed_against_the_steps_that_it_would_replace(
    precision: Any, compiled: bool, ratio: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiled step in bf16 replaces an eager one in bf16: against float32 the gain of the format counted twice."""
    core = SimpleNamespace(_compiled_call_impl=None, compile=lambda: setattr(core, "_compiled_call_impl", "compiled"))
    run = SimpleNamespace(core=core)
    took = {("float32", False): 10.0, ("bf16", False): 5.0, ("float32", True): 7.0, ("bf16", True): 4.0}

    def mean_step(run: Any, precision: str, steps: int, skipped: int) -> float:
        return took[precision, run.core._compiled_call_impl is not None]

    monkeypatch.setattr(rehearsal, "rehearsed", lambda *_: run)
    monkeypatch.setattr(rehearsal, "first_loss", lambda *_: 1.0)
    monkeypatch.setattr(probe, "mean_step", mean_step)
    monkeypatch.setattr(probe, "evaluate_once", lambda *_: None)
    answer = rehearsal.step_answer(tmp_path, precision, compiled, "cpu", 1)
    assert answer.works and answer.ratio == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("ratios", "best"),
    [
        ({"bf16": 0.5, "fp16": 0.4}, "fp16"),
        ({"bf16": 0.5, "fp16": 0.6}, "bf16"),
        ({"bf16": 0.95, "fp16": 0.91}, "float32"),
        ({"fp16": 0.5}, "fp16"),
        ({}, "float32"),
    ],
)
def test_auto_takes_the_fastest_format_that_the_device_has_if_it_is_worth_its_rounding(
    ratios: dict[str, float], best: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Formats that are not named have no units here: a product in them is slow."""
    monkeypatch.setattr(probe, "TRY_FORMATS", 0.0)
    monkeypatch.setattr(
        rehearsal, "try_format", lambda precision, *_, **__: Answer(True, 0.5 if precision in ratios else 9.0)
    )
    monkeypatch.setattr(rehearsal, "try_steps", lambda folder, precision, *_: Answer(True, ratios[precision]))

    def stop(run: Run, precision: str, *_: float) -> None:
        raise Chosen(precision)  # before anything is computed in that format, which may not work here

    monkeypatch.setattr(probe, "choose_compile", stop)
    with pytest.raises(Chosen, match=best):
        lifecycle.start(configure(steps=3, precision="auto"), tmp_path / "run", Silent())


@pytest.mark.parametrize(("within", "given"), [(math.inf, 60.0), (12.5, 12.5), (0.0, None), (-3.0, None)])
def test_a_trial_takes_no_more_time_than_the_run_can_spare_and_that_is_not_remembered(
    within: float, given: float | None, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []

    class Hangs:
        pid, returncode = 0, None

        def __init__(self, *_: object, **__: object) -> None:
            pass

        def communicate(self, timeout: float) -> None:
            limits.append(timeout)
            raise subprocess.TimeoutExpired("trial", timeout)

    monkeypatch.setattr(rehearsal.subprocess, "Popen", Hangs)
    monkeypatch.setattr(rehearsal, "stop", lambda process: None)
    answer = rehearsal.try_format("bf16", within=within)
    assert not answer.works and limits == ([] if given is None else [given])
    assert len(list(cache.glob("*.json"))) == (within == math.inf), "sixty seconds are a property of the machine"
    monkeypatch.setattr(rehearsal, "child", lambda *_: Answer(True, ratio=0.5))
    assert rehearsal.try_format("bf16").works == (within < math.inf)


def test_what_is_remembered_takes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "child", lambda *_: Answer(True, ratio=0.5))
    rehearsal.try_format("bf16")
    assert rehearsal.try_format("bf16", within=0.0).works


def test_all_trials_of_a_run_together_have_a_tenth_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, given = [100.0], []

    def child(words: list[str], limit: float, lasting: bool = True) -> Answer:
        given.append((words[0], round(limit, 6), lasting))
        now[0] += 50.0
        return Answer(True, ratio=0.5, first=10.0, lasting=lasting)

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(rehearsal, "child", child)
    monkeypatch.setattr(memory, "available", lambda *_: 1 << 60)
    config = dataclasses.replace(configure(precision="auto", compile=None), duration=DurationConfig(time="1500s"))
    batch = Batch({"x": torch.zeros(2, 3)}, torch.zeros(2), torch.arange(2), 2)
    run: Any = SimpleNamespace(
        config=config, plan=probe.draft(config, 50, ""), team=SingleProcess(), core=torch.nn.Identity(),
        store=SimpleNamespace(folder=Path("run/checkpoints")), display=Silent(), train=[batch],
    )  # fmt: skip
    until = now[0] + 150.0
    assert probe.choose_precision(run, 1.0, until) == ("bf16", 0.5)
    assert given == [("format", 60.0, True), ("step", 100.0, False), ("format", 50.0, False)]
    assert probe.choose_compile(run, "bf16", 0.5, until) == (False, 0.5)
    assert len(given) == 3 and [sentence.partition(" is ")[0] for sentence in run.plan.tried] == [
        "fp16", "torch.compile in bf16"
    ]  # fmt: skip


class Chosen(Exception):
    """The format that a run would be computed in."""


def test_without_memory_for_a_second_process_nothing_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "TRY_COMPILE", 0.0)
    monkeypatch.setattr(probe, "predicted_memory", lambda run: 1 << 60)
    monkeypatch.setattr(rehearsal, "child", lambda *_: pytest.fail("it would have been killed"))
    plan = train(configure(steps=3, compile=None), tmp_path / "run")["plan"]
    assert plan["compile"] is False and "memory" in plan["tried"][0]


def test_what_a_child_says_is_read_with_care() -> None:
    def works(code: int, output: Any) -> bool:
        return rehearsal.reply(code, output, "").works

    assert works(0, "noise\n" + rehearsal.json.dumps(dataclasses.asdict(Answer(True))))
    assert not any(works(0, output) for output in ("", "noise", "[1]", "{}", '{"works": true, "x": 1}'))
    assert memory.available() > 0
