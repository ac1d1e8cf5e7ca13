"""What candidates must know of the data that a run reads."""

from __future__ import annotations

import pytest

from weft.studies.engine.data_facts import facts_of
from weft.training.config import ReadingConfig, RunConfig


@pytest.mark.parametrize("limit", [None, 50])
def test_test_rows_are_those_of_the_source_however_few_are_judged(limit: int | None):
    reading = ReadingConfig(test_rows=limit)
    assert facts_of(RunConfig(source="digits", model="mlp", reading=reading)).test_rows == 359
