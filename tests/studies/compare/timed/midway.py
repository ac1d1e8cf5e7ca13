"""A comparison by time in its midst, without workers."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from studies.fabricated import make_study
from weft.studies.compare.candidates import Candidate
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.progress import unwatched
from weft.studies.compare.timed.clock import Clock
from weft.studies.compare.timed.pace import Pace
from weft.studies.compare.timed.session import Session
from weft.studies.compare.timed.state import State

FAST = Pace(0.01, 0.05, 0.1)


def under_way(left: float, slowness: float, folder: Path) -> Session:
    """A comparison by time in its midst."""
    clock = Clock(1000.0, 0.0, time.perf_counter() - (1000.0 - left - 15.0))
    clock.ratios = [slowness]
    study = replace(make_study(folder, {"mlp": 0.9}, seeds=1), candidates=[Candidate("mlp", "mlp", "mlp")] * 8)
    question = ComparisonConfig(source="photos", time="1000s")
    pool: Any = SimpleNamespace(workers=[None, None], threads=1, settled=False)
    session = Session(question, question, None, study, pool, State(), clock, lambda sentence: None, unwatched, print)
    session.state.paces[session.usual(study.candidates[0]).size] = FAST
    return session
