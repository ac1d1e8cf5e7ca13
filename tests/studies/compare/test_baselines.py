"""The classical baselines are good enough to be worth beating, and leave a record like a run's."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from weft.training import baseline
from weft.training.baseline import (
    ENOUGH,
    FEWEST,
    QUICK_STRENGTHS,
    QUICK_WORK,
    beside,
    bounded,
    hog,
    hog_of,
    run_baseline,
    seconds_per_row,
)
from weft.training.config import ReadingConfig, RunConfig
from weft.training.run.inputs import open_data
from weft.training.storage.record import read_predictions
from weft.training.storage.run_folder import RunFolder


def fitted(source: str, model: str, folder: Path) -> dict:
    config = RunConfig(source=source, model=model)
    return run_baseline(config, folder, *open_data(config))


def test_images_of_one_pixel_have_gradients_of_nothing():
    found = hog(np.full((4, 3, 1, 1), 200, np.uint8))
    assert len(found) == 4 and not found.any()


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


def test_the_speed_in_use_is_that_of_one_thread_on_decoded_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    threads, found = [], baseline.baseline_speed

    def seen(model: object, featurise: object, raws: np.ndarray, task: str) -> dict[str, float]:
        threads.append((torch.get_num_threads(), raws.shape, featurise))
        return found(model, featurise, raws, task)

    monkeypatch.setattr(baseline, "baseline_speed", seen)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        speed = fitted("digits", "hog+logistic", tmp_path)["inference"]
    finally:
        torch.set_num_threads(before)
    assert threads == [(1, (256, 1, 8, 8), hog)] and speed["threads"] == 1
    assert speed["throughput"] > 1 / speed["latency"], "many at once take less than one by one"


def refuse(*arguments: object, **options: object) -> None:
    raise ValueError("one class only")


def hog_at_once(images: np.ndarray, bins: int = 9) -> np.ndarray:
    """HOG of all images together, with wide numbers: what `hog` computes in parts."""
    down, across = np.gradient(images.astype(np.float32).mean(1), axis=(1, 2))
    angle = np.arctan2(down, across) % np.pi / np.pi * bins
    lower = np.floor(angle).astype(int)
    share, length, cell = angle - lower, np.hypot(down, across), images.shape[2] // 8
    found = np.empty((len(images), 8, 8, bins), np.float32)
    for number in range(bins):
        votes = length * ((lower % bins == number) * (1 - share) + ((lower + 1) % bins == number) * share)
        found[..., number] = votes.reshape(-1, 8, cell, 8, cell).sum((2, 4))
    energy = np.pad((found**2).sum(-1), ((0, 0), (1, 1), (1, 1)))
    around = sum(energy[:, i : i + 8, j : j + 8] for i in range(3) for j in range(3))
    return (found / np.sqrt(around + 1e-3)[..., None]).reshape(len(images), -1)


def test_images_in_parts_have_the_features_that_they_have_together(monkeypatch: pytest.MonkeyPatch):
    images = np.random.default_rng(0).integers(0, 256, (23, 3, 32, 32), dtype=np.uint8)
    monkeypatch.setattr(baseline, "CHUNK", 8)
    assert np.array_equal(hog(images), hog_at_once(images))
    source, transform = open_data(RunConfig(source="digits", model="hog+logistic"))
    raws = list(source.splits["train"].read(np.arange(20))[0])
    assert np.array_equal(hog_of(raws, transform), hog(np.stack([transform.pixels(raw).numpy() for raw in raws])))


def test_many_classes_get_fewer_steps_and_rows():
    assert bounded(10_000, 10 * 100)[:2] == (10_000, QUICK_STRENGTHS)
    rows, strengths, steps = bounded(10_000, 100 * 576)
    assert rows == 10_000 and strengths == (1.0,) and FEWEST <= steps <= ENOUGH
    rows, strengths, steps = bounded(10_000, 1000 * 576)
    assert rows < 10_000 and (strengths, steps) == ((1.0,), FEWEST)
    assert rows * 1000 * 576 * steps <= 1.01 * QUICK_WORK


def test_the_quick_baseline_is_announced_with_its_time_and_made_once(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path))
    source, transform = open_data(RunConfig(source="digits", model="mlp"))
    said: list[str] = []
    first, second = (beside(source, transform, None, said.append) for _ in range(2))
    assert first == second and first is not None and first["rows"] == 1295
    assert len(said) == 1 and re.search(r"about \d+ s; it is made once", said[0])


def test_a_baseline_without_memory_is_left_out_with_a_sentence(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path))
    monkeypatch.setattr("weft.machine.memory_available", lambda: 1000)
    source, transform = open_data(RunConfig(source="digits", model="mlp"))
    said: list[str] = []
    assert beside(source, transform, None, said.append) is None
    assert "left out: there is no memory" in said[-1]


def test_another_target_of_the_same_file_has_a_baseline_of_its_own(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """`easy` follows the words and `luck` does not; both have the same rows and columns to learn from."""
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    draw, folder = np.random.default_rng(0), tmp_path / "rows"
    folder.mkdir()
    for name, rows in {"train": 200, "validation": 60, "test": 60}.items():
        words = [f"{('poor', 'good')[row % 2]} film of day {draw.integers(9)}" for row in range(rows)]
        lines = [f"{text},{'ab'[row % 2]},{draw.choice(['x', 'y'])}" for row, text in enumerate(words)]
        (folder / f"{name}.csv").write_text("\n".join(["text,easy,luck", *lines]))
    found, rows_read = {}, set()
    for target in ("easy", "luck"):
        source, transform = open_data(
            RunConfig(source=str(folder), reading=ReadingConfig(target=target, inputs=("text",)))
        )
        rows_read.add((*source.columns, *(split.rows.tobytes() for split in source.splits.values())))
        found[target] = beside(source, transform, None, print)
    assert len(rows_read) == 1, "the target alone differs"
    assert found["easy"]["score"] > 0.95 and found["luck"]["score"] < 0.8


def test_a_baseline_is_scored_on_the_split_that_is_judged_and_reads_no_other(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path))
    source, transform = open_data(RunConfig(source="digits", model="mlp"))
    tested = beside(source, transform, None, print)
    unread = {role: split for role, split in source.splits.items() if role != "test"}
    judged = beside(replace(source, splits=unread), transform, None, print, "validation")
    assert judged is not None and tested is not None and judged["score"] != tested["score"]
    rows, predicted = len(source.splits["validation"]), judged["score"]
    assert (predicted * rows) == pytest.approx(round(predicted * rows)), "a share of the validation rows"
