"""What labels mean: which are missing, which are classes, which are quantities, and what is said about the doubtful."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.made import encoded, sentence
from weft.data import batches, open_source
from weft.data.config import SourceConfig
from weft.data.open.labels import look_alikes, wide
from weft.errors import WeftError


def labelled(labels: list[object]) -> str:
    return "text,label\n" + "\n".join(f"{sentence(n)},{label}" for n, label in enumerate(labels)) + "\n"


@pytest.mark.parametrize("word", ["", "  ", "null", "NaN", "NA", "N/A", "None", "nan", "#N/A", "<NA>"])
def test_a_missing_label_is_no_class(csv_file, word: str):
    labels: list[object] = ["pos", "neg"] * 15
    labels[4] = word
    path = csv_file(labelled(labels))
    with pytest.raises(WeftError, match=r"rows\.csv line 6: the label is missing.*--on-bad skip"):
        open_source(path)
    source = open_source(path, on_bad="skip")
    assert source.classes == ["neg", "pos"] and "1 bad row was skipped" in " ".join(source.notes)


@pytest.mark.parametrize("stream", [False, True])
def test_a_missing_label_of_parquet_is_no_class(tmp_path: Path, stream: bool):
    labels = [None if n == 3 else "ab"[n % 2] for n in range(200)]
    pq.write_table(pa.table({"text": [sentence(n) for n in range(200)], "label": labels}), tmp_path / "train.parquet")
    with pytest.raises(WeftError, match=r"train\.parquet row 3: the label is missing"):
        source = open_source(tmp_path, stream=stream)
        for split in source.splits.values():
            split.read(np.arange(len(split)))
    assert open_source(tmp_path, stream=stream, on_bad="skip").classes == ["a", "b"]


def test_a_declared_class_may_be_called_none(tmp_path: Path):
    for name in ("None", "NA"):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(6):
            (tmp_path / "images" / name / f"{number}.png").write_bytes(encoded(number))
    assert open_source(tmp_path / "images").classes == ["NA", "None"]
    names = {"info": {"features": {"label": {"names": ["None", "some"]}}}}
    table = pa.table({"text": [sentence(n) for n in range(20)], "label": ["None", "some"] * 9 + ["None", None]})
    pq.write_table(table.replace_schema_metadata({"huggingface": json.dumps(names)}), tmp_path / "train.parquet")
    with pytest.raises(WeftError, match="row 19: the label is missing"):
        open_source(tmp_path / "train.parquet")
    assert open_source(tmp_path / "train.parquet", on_bad="skip").classes == ["None", "some"]


def test_a_split_without_any_label_is_unlabelled(tmp_path: Path):
    (tmp_path / "train.csv").write_text(labelled(["pos", "neg"] * 15))
    (tmp_path / "test.csv").write_text(labelled([""] * 6))
    assert "held out" in open_source(tmp_path).splits["test"].origin
    (tmp_path / "train.csv").write_text(labelled([""] * 30))
    source = open_source(tmp_path)
    assert source.task == "none" and "no row of 'train' has a label" in source.notes


def test_labels_that_are_all_missing_are_noted(tmp_path: Path):
    table = pa.table({"text": [sentence(n) for n in range(30)], "label": pa.nulls(30, pa.string())})
    pq.write_table(table, tmp_path / "train.parquet")
    source = open_source(tmp_path)
    assert source.task == "none" and "no row of 'train' has a label" in source.notes


def test_three_classes_are_no_binary_task(csv_file):
    with pytest.raises(WeftError, match=r"3 classes.*--task classes"):
        open_source(csv_file(labelled(["a", "b", "c"] * 10)), task="binary")


def test_classes_that_differ_in_case_or_blanks_are_pointed_out(csv_file):
    labels: list[object] = ["Pos", "pos", "neg", "a b", "a  b"] * 8
    note = " ".join(open_source(csv_file(labelled(labels))).notes)
    assert "'Pos' (8 rows) and 'pos' (8 rows)" in note and "'a  b' (8 rows) and 'a b' (8 rows)" in note
    assert look_alikes(["e\u0301", "\u00e9", "e"]) == [["e\u0301", "\u00e9"]]


def test_labels_that_differ_in_outer_blanks_are_one_class_with_a_note(csv_file):
    labels: list[object] = ["pos", "pos ", "neg", " neg", "other"] * 8
    source = open_source(csv_file(labelled(labels)))
    assert source.classes == ["neg", "other", "pos"]
    assert "16 labels of 'neg', 'pos' have blanks around them, which were taken off" in source.notes
    everywhere = open_source(csv_file(labelled(["pos ", "neg "] * 8)))
    assert everywhere.classes == ["neg", "pos"] and "blanks" not in " ".join(everywhere.notes)


def test_many_integers_are_quantities_unless_asked_otherwise(csv_file):
    path = csv_file(labelled([n % 150 for n in range(450)]))
    source = open_source(path)
    assert source.task == "regression" and "--task classes" in " ".join(source.notes)
    assert len(open_source(path, task="classes").classes) == 150


def test_a_row_a_class_cannot_be_learnt(csv_file):
    with pytest.raises(WeftError, match="no class has two rows"):
        open_source(csv_file(labelled([f"name {n}" for n in range(20)])))


def test_targets_keep_the_digits_by_which_they_differ(csv_file):
    values = 1e9 + np.arange(30) / 8
    rows = [f"{n},{value!r}" for n, value in enumerate(values.tolist())]
    source = open_source(csv_file("a,y\n" + "\n".join(rows)))
    found = np.concatenate([source.splits[role].targets for role in ("train", "validation", "test")])
    assert sorted(found.tolist()) == values.tolist()
    assert batches(source, "train", 4)[0].targets.double().sub(1e9).remainder(0.125).abs().max() == 0
    ordinary = open_source(csv_file("a,y\n" + "\n".join(f"{n},{n / 7}" for n in range(30))))
    assert ordinary.splits["train"].targets.dtype == np.float32


def test_only_targets_that_need_it_are_wide():
    assert wide(1e9 + np.arange(10.0)) and wide(1e-20 * np.arange(10.0)) and wide(1e20 * np.arange(10.0))
    assert not wide(np.arange(1900.0, 2020.0)) and not wide(np.full(5, 1e9)) and not wide(np.array([]))


def test_an_infinite_target_is_named(csv_file):
    rows = [f"{n},{'inf' if n == 7 else n / 3}" for n in range(30)]
    path = csv_file("a,y\n" + "\n".join(rows))
    with pytest.raises(WeftError, match=r"line 9: the target inf is no number"):
        open_source(path)
    assert open_source(path, on_bad="skip").task == "regression"


def test_a_flag_for_columns_is_told_where_there_are_none() -> None:
    notes = open_source("digits", SourceConfig(target="x")).notes
    assert any("--target x was not used" in note for note in notes)


def test_two_classes_are_not_made_of_three(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,label\n" + "".join(f"{n},{'abc'[n % 3]}\n" for n in range(30)))
    with pytest.raises(WeftError, match=r"3 classes, .*--task binary.*--task classes"):
        open_source(str(tmp_path / "a.csv"), SourceConfig(task="binary"))


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_true_and_false_are_names_of_classes(tmp_path: Path, ending: str):
    rows = [{"text": sentence(n), "label": n % 3 == 0} for n in range(60)]
    path = tmp_path / f"rows{ending}"
    if ending == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif ending == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        path.write_text(labelled([str(row["label"]).lower() for row in rows]))
    source = open_source(path)
    assert source.classes == ["false", "true"] and source.task == "binary"
    raws, targets = source.splits["train"].read(np.arange(5))
    number = {sentence(n): n for n in range(60)}
    assert targets.tolist() == [float(number[raw] % 3 == 0) for raw in raws]


def test_a_missing_truth_is_no_class(tmp_path: Path):
    labels = [None if n == 3 else n % 2 == 0 for n in range(60)]
    pq.write_table(pa.table({"text": [sentence(n) for n in range(60)], "label": labels}), tmp_path / "all.parquet")
    with pytest.raises(WeftError, match=r"row 3: the label is missing"):
        open_source(tmp_path / "all.parquet")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("columns", [("text", "kind"), ("kind", "message")])
def test_words_that_repeat_beside_a_text_are_the_target(tmp_path: Path, columns: tuple[str, str], ending: str):
    known = {"kind": ["ham", "spam", "unsure"] * 20}
    table = pa.table({name: known.get(name, [sentence(n) for n in range(60)]) for name in columns})
    path = tmp_path / f"mails{ending}"
    if ending == ".parquet":
        pq.write_table(table, path)
    else:
        rows = zip(*(table.column(name).to_pylist() for name in columns), strict=True)
        path.write_text("\n".join(",".join(row) for row in [columns, *rows]) + "\n")
    source = open_source(path)
    assert source.classes == ["ham", "spam", "unsure"] and source.target == "kind"
    assert any("'kind'" in note and "--target" in note for note in source.notes)


def test_words_that_repeat_beside_a_picture_are_the_target(tmp_path: Path):
    table = pa.table({"photo": [encoded(n) for n in range(60)], "kind": ["cat", "dog"] * 30})
    pq.write_table(table, tmp_path / "pets.parquet")
    source = open_source(tmp_path / "pets.parquet")
    assert source.modality == "image" and source.classes == ["cat", "dog"]


def test_words_that_do_not_repeat_are_no_target(tmp_path: Path):
    rows = [f"{sentence(n)},{sentence(n + 100)}" for n in range(60)]
    (tmp_path / "two.csv").write_text("first,second\n" + "\n".join(rows) + "\n")
    with pytest.raises(WeftError, match=r"--inputs: first, second .*--target"):
        open_source(tmp_path / "two.csv")
