"""A small comparison that is really carried out, once for all tests that look at one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import forking
from studies.fabricated import asked
from weft.studies.compare.comparison import compare


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
