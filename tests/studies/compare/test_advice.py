"""What `benchmarks/advice.py` calls the end of training, and agreement."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

PLACE = Path(__file__).parents[3] / "benchmarks" / "advice.py"


@pytest.fixture(scope="module")
def advice() -> ModuleType:
    found = importlib.util.spec_from_file_location("advice", PLACE)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_two_absent_advices_do_not_agree(advice: ModuleType):
    assert advice.agree("Use mlp: the cheapest", "Use mlp: it is better") == "yes"
    assert advice.agree("Use mlp: the cheapest", "Use vit: it is better") == "no"
    level = "Use vit: the cheapest of those that none leads by more than a standard error (mlp, rcnn)."
    assert advice.agree("Use mlp: it is better", level) == "no, but level with it"
    assert advice.agree("No recommendation: all guess.", "") == "no: no advice"


def test_runs_get_longer_while_that_helps_and_the_grid_takes_long_enough(
    advice: ModuleType, monkeypatch: pytest.MonkeyPatch
):
    """One candidate is best at 4 s, the least; one gets better without end, and one never leaves chance."""
    scores = {
        "flat": {4.0: 0.9, 8.0: 0.85},
        "steep": {4.0 * 2**n: 0.1 * n for n in range(5)},
        "stuck": {4.0 * 2**n: 0.005 for n in range(5)},
    }
    settings = [SimpleNamespace(candidate=SimpleNamespace(name=name, start=""), size=name) for name in scores]
    seed = lambda setting, seed, length: [(setting.candidate.name, length)]  # noqa: E731
    session: Any = SimpleNamespace(
        state=SimpleNamespace(
            stages=SimpleNamespace(full=2.0), paces=dict.fromkeys(scores, SimpleNamespace(step=0.01))
        ),
        study=SimpleNamespace(facts=SimpleNamespace(classes=["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"] * 20)),
        runs=SimpleNamespace(seed=seed, predicted=lambda job: job[1]),
        validation=lambda job: scores[job[0]][job[1]],
        workers=2,
        clock=SimpleNamespace(total=10.0),
    )
    monkeypatch.setattr(advice, "run", lambda session, jobs: None)
    assert advice.to_the_end(session, settings, seeds=5, finalists=0) == {"flat": 4.0, "steep": 8.0, "stuck": 8.0}
    session.clock.total = 15.0
    assert advice.to_the_end(session, settings, seeds=5, finalists=0) == {"flat": 8.0, "steep": 16.0, "stuck": 16.0}


def test_what_early_advice_costs_stands_in_the_table(advice: ModuleType):
    rows = [
        {"name": "mlp", "score": 0.97, "low": 0.95, "high": 0.98},
        {"name": "resnet", "score": 0.98, "low": 0.96, "high": 0.99},
    ]
    record = {
        "quick": {
            "1m": {"seconds": 60.0, "advice": "Use mlp: the cheapest", "rows": rows},
            "5m": {"seconds": 300.0, "advice": "Use resnet: the best", "rows": rows},
        },
        "grid": {
            "seconds": 600.0,
            "runs": 9,
            "seeds": 5,
            "finalists": 2,
            "advice": "Use resnet: the best",
            "rows": rows,
        },
    }
    early, late = [line for line in advice.draw({"digits": record}).splitlines() if line.startswith("| digits")]
    assert early.endswith("| no | 97.0 % (95.0…98.0) | 98.0 % (96.0…99.0) |")
    assert late.startswith("| digits | 5.0 min | resnet | 10 min (2.0 T) |") and "| yes |" in late
    assert advice.in_grid(rows, "none") == "–"
