"""Tests that compute in a narrow format are skipped where that would kill the process."""

from __future__ import annotations

from typing import cast

import pytest

from weft.training.run.distributed import Precision
from weft.training.run.rehearsal import try_format


def require(precision: str) -> None:
    """Skip the test on a machine on which `precision` does not work; tried once, in a process of its own."""
    answer = try_format(cast(Precision, precision))
    if not answer.works:
        pytest.skip(f"{precision} does not work on this machine: {answer.why}")
