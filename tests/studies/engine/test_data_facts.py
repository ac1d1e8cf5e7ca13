"""What workers keep open: a source is read once, and what runs of a cross-validation read is fitted once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.made import encoded
from weft.data.batch.stores import pixel_store
from weft.data.config import TransformConfig
from weft.studies.engine import data_facts
from weft.studies.engine.data_facts import CUTS, KEPT, cuts_of, decoding_ahead, facts_of, opened, source_of
from weft.training.config import ReadingConfig, RunConfig

FOLDS = [ReadingConfig(folds=5, fold=fold) for fold in range(5)]


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often sources were read, and transforms fitted."""
    cuts_of.cache_clear()
    found: dict[str, int] = {}
    for name in ("read", "fit"):
        monkeypatch.setattr(data_facts, name, counted(found, name, getattr(data_facts, name)))
    return found


def counted(counts: dict[str, int], name: str, work: Any) -> Any:
    def call(*arguments: Any) -> Any:
        counts[name] = counts.get(name, 0) + 1
        return work(*arguments)

    return call


def test_the_runs_of_a_cross_validation_read_their_source_once_and_fit_once_a_fold(counts: dict[str, int]):
    """At two image sides, and beside the parts of a learning curve; as one worker runs candidates in turn."""
    parts = [replace(FOLDS[0], train_fraction=share) for share in (0.1, 0.3)]
    for _ in range(3):
        for reading in (*FOLDS, *parts):
            for side in (None, 16):
                opened("digits", reading, TransformConfig(img_size=side))
    assert counts == {"read": 1, "fit": 14} and CUTS >= 14


def test_cuts_of_one_source_share_its_rows_and_its_images(counts: dict[str, int]):
    found = [opened("digits", reading, TransformConfig(img_size=16)) for reading in FOLDS]
    tests = [source.splits["test"].rows.tolist() for source, _ in found]  # type: ignore[union-attr]
    assert sorted(row for rows in tests for row in rows) == list(range(1797))
    stores = {id(pixel_store(source, source.splits["train"], transform, 1)) for source, transform in found}  # type: ignore[arg-type]
    assert len(stores) == 1


def test_what_says_how_a_source_is_read_makes_another_reading(counts: dict[str, int], tmp_path: Path):
    lines = [f"{row},{row % 7},{row % 2},{row % 3}" for row in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,one,two", *lines]))
    tasks = {
        target: source_of(str(tmp_path / "rows.csv"), ReadingConfig(target=target, inputs=("a", "b"))).task
        for target in ("one", "two")
    }
    assert tasks == {"one": "binary", "two": "classes"} and counts == {"read": 2}


def test_no_more_than_a_few_sources_are_kept(counts: dict[str, int], tmp_path: Path):
    for number in range(KEPT + 1):
        rows = np.random.default_rng(number).normal(size=(40, 2))
        lines = [f"{first},{second},{row % 2}" for row, (first, second) in enumerate(rows)]
        (tmp_path / f"{number}.csv").write_text("\n".join(["a,b,label", *lines]))
        source_of(str(tmp_path / f"{number}.csv"), ReadingConfig())
    assert cuts_of.cache_info().currsize == KEPT


def test_images_are_decoded_ahead_unless_they_are_in_the_cache_or_decoded_batch_by_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    for row in range(40):
        (tmp_path / "photos" / "ab"[row % 2]).mkdir(parents=True, exist_ok=True)
        (tmp_path / "photos" / "ab"[row % 2] / f"{row}.png").write_bytes(encoded(row, (300, 300)))
    config = RunConfig(source=str(tmp_path / "photos"), transform=TransformConfig(img_size=32))
    count, took = decoding_ahead(config, 1.0)
    assert count == 40 and 0 < took < 10
    assert 0 < decoding_ahead(config, 60.0)[1] < 30, "a few images tell that it takes no minute"
    batch_by_batch = replace(config, reading=ReadingConfig(memory=1000))
    assert decoding_ahead(batch_by_batch, 1.0) == decoding_ahead(RunConfig(source="digits"), 1.0) == (0, 0.0)
    opened(config.source, config.reading, config.transform)
    cuts_of.cache_clear()
    assert decoding_ahead(config, 1.0) == (0, 0.0), "they are in the cache now"
    assert decoding_ahead(RunConfig(source="diabetes"), 1.0) == (0, 0.0)


@pytest.mark.parametrize("limit", [None, 50])
def test_test_rows_are_those_of_the_source_however_few_are_judged(limit: int | None):
    reading = ReadingConfig(test_rows=limit)
    assert facts_of(RunConfig(source="digits", model="mlp", reading=reading)).test_rows == 359
