"""Cross-validation: every row is in one fold, classes and groups are shared out as for any split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft.data import open_source
from weft.errors import WeftError
from weft.training.storage import record


def table(folder: Path, rows: int = 60) -> Path:
    lines = [
        f"{number},{number * 0.5},{'rare' if number % 6 == 0 else 'common'},{number // 4}" for number in range(rows)
    ]
    path = folder / "table.csv"
    path.write_text("\n".join(["a,b,label,patient", *lines]) + "\n")
    return path


def rows_tested(path: Path, fold: int, folds: int = 5, **options: Any) -> np.ndarray:
    source = open_source(path, folds=folds, fold=fold, target="label", **options)
    rows = {role: set(source.splits[role].rows.tolist()) for role in ("train", "validation", "test")}  # type: ignore[union-attr]
    assert not (rows["test"] & rows["train"]) and not (rows["test"] & rows["validation"])
    assert len(rows["test"] | rows["train"] | rows["validation"]) == 60
    return source.splits["test"].rows  # type: ignore[union-attr]


@pytest.mark.parametrize("folds", [2, 5])
def test_every_row_is_tested_once_and_every_fold_has_its_share_of_each_class(tmp_path: Path, folds: int):
    path = table(tmp_path)
    parts = [rows_tested(path, fold, folds) for fold in range(folds)]
    assert sorted(np.concatenate(parts).tolist()) == list(range(60))
    for part in parts:
        assert abs(len(part) - 60 / folds) <= 2 and abs((part % 6 == 0).sum() - 10 / folds) <= 1


def test_another_seed_is_another_cut_and_groups_stay_together(tmp_path: Path):
    path = table(tmp_path)
    assert rows_tested(path, 0).tolist() != rows_tested(path, 0, split_seed=1).tolist()
    parts = [set((rows_tested(path, fold, 3, group="patient", inputs=("a", "b")) // 4).tolist()) for fold in range(3)]
    assert not parts[0] & parts[1] and not parts[1] & parts[2] and not parts[0] & parts[2]


def test_predictions_keep_which_test_rows_are_of_one_group(tmp_path: Path):
    options: dict[str, Any] = {"target": "label", "group": "patient", "inputs": ("a", "b")}
    parts = [record.tested_rows(open_source(table(tmp_path), folds=3, fold=fold, **options)) for fold in range(3)]
    rows, groups = (np.concatenate([part[name] for part in parts]) for name in ("row", "group"))
    assert len({*zip(rows // 4, groups, strict=True)}) == len(set(groups)) == 15, "one number a patient in all folds"
    assert record.tested_rows(open_source(table(tmp_path), target="label")) == {}


def test_folds_that_cannot_be(tmp_path: Path):
    path = table(tmp_path)
    with pytest.raises(WeftError, match="--fold 5 is not one of 5 folds"):
        open_source(path, folds=5, fold=5, target="label")
    (tmp_path / "both").mkdir()
    for name in ("train", "test"):
        (tmp_path / "both" / f"{name}.csv").write_text(path.read_text())
    with pytest.raises(WeftError, match="has a split for the final figures, 'test'; leave out --folds"):
        open_source(tmp_path / "both", folds=5, target="label")
