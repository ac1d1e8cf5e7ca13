"""`weft compare --plan`: the runs that the comparison itself would make."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from studies.fabricated import make_study
from weft.studies.compare import dry_run
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.dry_run import dry_time
from weft.studies.compare.timed.pace import Pace
from weft.studies.engine.simulation import DryRun
from weft.training.config import ReadingConfig

QUESTION = ComparisonConfig(source="photos", match="time", time="15m")
POOL: Any = SimpleNamespace(workers=[None, None])


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The plan of a question about two networks whose steps take 10 ms."""
    study = make_study(tmp_path, {"mlp": 0.9, "lenet5": 0.9, "hog+logistic": 0.9})
    paces = {"mlp": Pace(0.01, 0.05, 0.1), "lenet5": Pace(0.01, 0.05, 0.1)}
    monkeypatch.setattr(dry_run, "paces_of", lambda pool, configs: paces)
    monkeypatch.setattr(dry_run, "shape", lambda config: config.model)
    return lambda asked, *trained: dry_time(asked, study, POOL, trained)


def kinds(dry: DryRun) -> Counter[str]:
    """How many runs of each stage: first ones, trials, full ones."""
    return Counter(("first", "trials", "full")[run.stage] for run in dry.runs)


def test_every_fold_of_a_seed_is_a_run(plan: Any):
    whole, cut = plan(QUESTION), plan(replace(QUESTION, reading=ReadingConfig(folds=5)))
    assert kinds(whole) == {"first": 2, "trials": 2, "full": 6}
    assert kinds(cut) == {"first": 10, "trials": 2, "full": 30}
    assert "mlp, seed 2, fold 4" in {run.name for run in cut.runs}
    total = sum(run.seconds for run in cut.runs) / len(POOL.workers)
    assert total <= 0.8 * 900, "it fits into the time all the same, in shorter runs"


@pytest.mark.parametrize(("trials", "there"), [(None, True), (0, False), (1, False)])
def test_trials_are_planned_where_some_are_asked_for(plan: Any, trials: int | None, there: bool):
    assert ("trials" in kinds(plan(replace(QUESTION, trials=trials)))) is there


def test_a_learning_curve_has_its_runs(plan: Any):
    assert kinds(plan(replace(QUESTION, learning_curve=True)))["full"] == 18


def test_the_length_that_was_given_for_each_run_is_not_that_of_the_whole(plan: Any):
    dry = plan(ComparisonConfig(source="photos", match="time", amount="60s", seeds=3))
    full = [run.seconds for run in dry.runs if run.stage == 2]
    assert len(full) == 6 and all(60.0 < length < 63.0 for length in full) and not dry.notes


def test_trained_networks_are_named(plan: Any):
    assert "trained networks (minilm_l6) take part" in plan(QUESTION, "minilm_l6").notes[-1]
