"""A comparison on a machine whose narrow number formats crash finishes all its candidates."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from crashing_machine import PRODUCTS, environment, is_narrow
from studies.fabricated import asked
from weft.studies.compare.comparison import compare
from weft.studies.engine import runner
from weft.studies.engine.worker import TaskFailed, attempt
from weft.training.run import probe


class Here:
    """A worker that does its tasks in this process, which is slow to start but once."""

    warm = True

    def __init__(self) -> None:
        self.connection, self.theirs = multiprocessing.Pipe()

    def ask(self, task: Callable[..., Any], *arguments: Any, log: Path | None = None) -> None:
        console = os.dup(1), os.dup(2)
        self.ended = attempt(task, arguments, log, console)
        for copy in console:
            os.close(copy)
        self.theirs.send("ended")

    def answer(self, timeout: float | None = None) -> Any:
        self.connection.recv()
        kind, value, details, cause = self.ended
        if kind != "done":
            raise TaskFailed(value, kind == "refused", details, cause)
        return value

    def terminate(self) -> None:
        self.connection.close()

    def join(self, patience: float) -> None:
        pass


def refuse_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have products of narrow numbers fail in this process, where a crash would end the tests."""
    for place, names in PRODUCTS.items():
        owner: Any = torch
        for part in filter(None, place.split(".")):
            owner = getattr(owner, part)
        for name in names:
            monkeypatch.setattr(owner, name, guarded(getattr(owner, name)))


def guarded(product: Callable[..., Any]) -> Callable[..., Any]:
    def compute(*values: Any, **options: Any) -> Any:
        assert not is_narrow(torch, values), "this would be an illegal instruction"
        return product(*values, **options)

    return compute


def test_a_comparison_where_narrow_formats_crash_finishes_all_candidates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (environment(tmp_path) | {"WEFT_CACHE": str(tmp_path / "cache")}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(runner, "Worker", Here)
    monkeypatch.setattr(probe, "TRY_FORMATS", 0.0)
    monkeypatch.setattr(probe, "NARROW", ("bf16",))
    refuse_narrow(monkeypatch)
    study = compare(asked(seeds=1, baseline=False), tmp_path / "study", "weft compare", lambda sentence: None)
    assert len(study.jobs) == 2 and all(study.finished(job) for job in study.jobs)
    for job in study.jobs:
        plan = study.run_folder(job).plan()
        assert plan is not None and plan.precision == "float32" and "SIGILL" in plan.tried[0]
