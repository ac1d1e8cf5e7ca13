"""A small comparison that is really carried out, once for all tests that look at one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import forking
from weft.studies.compare.comparison import ComparisonConfig, compare


def asked(**changes) -> ComparisonConfig:
    """Two networks and the baseline on digits, a few steps each."""
    settings = {"models": "mlp,vit_nano_p4_32", "amount": "10k", "seeds": 2, "steps": 12, "controls": False, "jobs": 1}
    return ComparisonConfig(**{**settings, **changes})


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished comparison; do not change it."""
    folder = tmp_path_factory.mktemp("comparison")
    with forking.quick_workers():
        compare(asked(), folder, "weft compare", lambda sentence: None)
    return folder


@pytest.fixture(scope="module")
def quick_workers() -> Iterator[None]:
    with forking.quick_workers():
        yield
