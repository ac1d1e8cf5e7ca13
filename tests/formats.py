"""Tests that compute in a narrow format are skipped where that would kill the process."""

from __future__ import annotations

from typing import cast

import pytest
from torch import nn

from weft.training.config import Precision
from weft.training.run.rehearsal import try_format


def require(precision: str, net: nn.Module | None = None) -> None:
    """Skip the test on a machine on which `precision` does not work, for the layers of `net` if it is given.

    It is tried once, in a process of its own.
    """
    answer = try_format(cast(Precision, precision), net=net or nn.Identity())
    if not answer.works:
        pytest.skip(f"{precision} does not work on this machine: {answer.why}")
