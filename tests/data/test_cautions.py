"""What a reader of scores has to know first: test rows that were learnt from, one class that has nearly all rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from weft.data.open.labels import uneven
from weft.data.open.source import open_source
from weft.data.show.cautions import cautions
from weft.data.show.summary import summarize


def table(path: Path, rows: list[str]) -> Path:
    path.write_text("\n".join(["text,label", *rows]) + "\n")
    return path


def test_test_rows_that_occur_in_train_are_counted(tmp_path: Path):
    table(tmp_path / "train.csv", [f"a film of the year {year},{year % 2}" for year in range(1900, 1990)])
    table(tmp_path / "test.csv", [f"a film of the year {year},{year % 2}" for year in range(1980, 2020)])
    (said,) = cautions(open_source(tmp_path, val_fraction=0.1))
    count = int(said.split()[0])
    assert 5 <= count <= 10 and "of 40 test rows occur in the training split" in said


def test_a_class_of_nearly_all_rows_is_named(tmp_path: Path):
    rows = [f"sentence number {n},{'rare' if n % 20 == 0 else 'common'}" for n in range(400)]
    (said,) = cautions(open_source(table(tmp_path / "all.csv", rows)))
    assert "of the test rows are 'common'" in said and "balanced accuracy" in said


def test_nothing_is_said_of_sound_data():
    assert cautions(open_source("digits")) == []


def told_of_labels(source: Path) -> list[str]:
    return [said for said in summarize(open_source(source)).warnings if "to look at" in said]


def flowers(rare: int, wrong: int = 0) -> list[str]:
    """Rows of three kinds, the third nearer to the first, and so few; the first `wrong` have another label."""
    numbers = np.random.default_rng(0).normal(0, 0.1, (120 + rare, 3))
    kinds = np.repeat([0, 1, 2], [60, 60, rare])
    numbers += np.array([[5, 0, 0], [0, 5, 0], [5, 0, 4]])[kinds]
    names = ["rose", "lily", "iris"]
    return [
        ",".join([*(f"{number:.4f}" for number in line), names[1] if row < wrong else names[kind]])
        for row, (line, kind) in enumerate(zip(numbers, kinds, strict=True))
    ]


@pytest.mark.parametrize("rare", [4, 12])
def test_rows_of_a_rare_class_are_not_suspicious(tmp_path: Path, rare: int):
    """In a small split they are fewer than the neighbours that are asked; a wrong label is found all the same."""
    head = "a,b,c,label"
    (tmp_path / "sound.csv").write_text("\n".join([head, *flowers(rare)]) + "\n")
    assert told_of_labels(tmp_path / "sound.csv") == []
    (tmp_path / "wrong.csv").write_text("\n".join([head, *flowers(rare, wrong=1)]) + "\n")
    (said,) = told_of_labels(tmp_path / "wrong.csv")
    assert said.startswith("1 label of ") and said.endswith("wrong.csv line 2 (lily), among rose")


def test_class_weights_are_offered_where_a_class_is_rare(tmp_path: Path):
    rows = [f"sentence number {n},{'rare' if n % 20 == 0 else 'common'}" for n in range(400)]
    (said,) = uneven(open_source(table(tmp_path / "rare.csv", rows)))
    assert "'common' has 1" in said and "times the rows of 'rare'" in said and "--class-weights balanced" in said
    rows = [f"sentence number {n},{'rare' if n % 5 == 0 else 'common'}" for n in range(400)]
    assert list(uneven(open_source(table(tmp_path / "less.csv", rows)))) == []
    assert list(uneven(open_source("diabetes"))) == []
