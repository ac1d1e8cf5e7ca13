"""The classical baselines are good enough to be worth beating, and leave a record like a run's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from weft.training.baseline import hog, run_baseline, seconds_per_row
from weft.training.config import RunConfig
from weft.training.run.inputs import open_data
from weft.training.storage.record import read_predictions
from weft.training.storage.run_folder import RunFolder


def fitted(source: str, model: str, folder: Path) -> dict:
    config = RunConfig(source=source, model=model)
    return run_baseline(config, folder, *open_data(config))


def test_hog_with_logistic_regression_reads_digits(tmp_path: Path):
    record = fitted("digits", "hog+logistic", tmp_path)
    assert record["metrics"]["accuracy"] > 0.94
    assert RunFolder(tmp_path).record() == record
    found = read_predictions(tmp_path)
    assert (found["predicted"] == found["target"]).mean() == record["metrics"]["accuracy"]


def test_a_gradient_votes_for_its_own_orientation():
    """A vertical edge has a horizontal gradient: all of its energy is in the first bin."""
    image = np.zeros((1, 1, 16, 16), np.uint8)
    image[..., 8:] = 255
    cells = hog(image).reshape(8, 8, 9)
    assert cells[..., 0].sum() > 0 and np.allclose(cells[..., 1:], 0)
    turned = hog(image.swapaxes(2, 3)).reshape(8, 8, 9)  # horizontal edge: between the bins 4 and 5 of nine
    assert np.allclose(turned[..., [0, 1, 2, 3, 6, 7, 8]], 0) and turned[..., 4:6].sum() > 0


def test_text_and_numbers_have_baselines_too(tmp_path: Path):
    rows = [f"{'good fine nice' if n % 2 else 'bad poor sad'} film {n},{n % 2}" for n in range(120)]
    (tmp_path / "films.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    assert fitted(str(tmp_path / "films.csv"), "tfidf+logistic", tmp_path / "a")["metrics"]["accuracy"] == 1.0
    assert fitted("diabetes", "logistic", tmp_path / "b")["metrics"]["r2"] > 0.3
    assert fitted("breast_cancer", "logistic", tmp_path / "c")["metrics"]["accuracy"] > 0.93


def test_a_few_rows_tell_how_long_all_will_take(monkeypatch: pytest.MonkeyPatch):
    source, transform = open_data(RunConfig(source="digits", model="hog+logistic"))
    assert 0 < seconds_per_row(source, transform) < 1
    monkeypatch.setattr("weft.training.baseline.best_model", refuse)
    assert seconds_per_row(source, transform) == 0.0, "one class among the rows tells nothing"


def refuse(*arguments: object, **options: object) -> None:
    raise ValueError("one class only")
