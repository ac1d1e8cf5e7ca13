"""Over-fitting is named from the curve of a run, and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from training.runs import configure, train
from weft.training.learnt import CURVES, draw_curves, overfitting


def record(train_loss: list[float], validation_loss: list[float]) -> dict[str, Any]:
    curve = [
        {"kind": "evaluation", "epoch": float(number + 1), "train_loss": a, "validation_loss": b}
        for number, (a, b) in enumerate(zip(train_loss, validation_loss, strict=True))
    ]
    return {"curve": [*curve, {"kind": "train", "loss": 1.0}], "best_step": 20}


@pytest.mark.parametrize(
    ("train_loss", "validation_loss", "sentence"),
    [
        ([2.0, 1.0, 0.5, 0.2], [2.0, 1.2, 1.4, 1.9], "after epoch 2 the validation loss rose from 1.2 to 1.9"),
        ([2.0, 1.0, 0.3], [2.1, 1.3, 1.25], "training loss 0.3, validation loss 1.25 at the end"),
        ([2.0, 1.5, 1.2], [2.1, 1.5, 1.25], None),
        ([2.0, 0.1], [2.0, 3.0], None),  # too few to tell
        ([2.0, float("nan"), 1.0, 0.9], [2.0, 1.0, 1.5, 1.4], None),
    ],
)
def test_over_fitting_is_named_with_its_gap(
    train_loss: list[float], validation_loss: list[float], sentence: str | None
) -> None:
    said = overfitting(record(train_loss, validation_loss))
    assert said is None if sentence is None else said is not None and sentence in said and "augmentation" in said


@pytest.mark.parametrize(
    ("rows", "train_loss", "validation_loss", "named"),
    [
        (16, 0.4, [0.9, 0.5, 0.62], False),  # a quarter more is what chance does to the mean of 16 losses
        (1000, 0.4, [0.9, 0.5, 0.62], True),
        (16, 0.4, [0.9, 0.5, 1.9], True),
        (1000, 0.004, [0.9, 0.0053, 0.0066], False),  # R² stays 0.99
        (6, 0.2, [0.9, 0.5, 0.5], False),
        (1000, 0.2, [0.9, 0.5, 0.5], True),
    ],
)
def test_what_chance_does_to_few_rows_is_no_over_fitting(
    rows: int, train_loss: float, validation_loss: list[float], named: bool
) -> None:
    found = {**record([1.0, 1.1 * train_loss, train_loss], validation_loss), "learnt": {"rows": rows}}
    assert (overfitting(found) is not None) is named


def test_both_losses_are_drawn_where_there_is_a_curve(tmp_path: Path) -> None:
    draw_curves(tmp_path, record([1.0, 0.5], [1.0, 0.6]))
    assert not list(tmp_path.iterdir())
    train(configure("mlp", steps=60, eval_every=20), tmp_path / "run")
    picture = (tmp_path / "run" / CURVES).read_text()
    assert picture.startswith("<svg") and "training" in picture and "validation" in picture
