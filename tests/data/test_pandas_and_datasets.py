"""The real pandas and `datasets`, where they are installed: what a person holds in them opens, trains and predicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

import weft
from weft.api import Leaderboard
from weft.errors import WeftError

DIGITS: Any = load_digits()
PIXELS = (DIGITS.images[:120] * 15).astype(np.uint8)
LABELS = DIGITS.target[:120]
TEXTS = [f"{'good' if number % 2 else 'bad'} film number {number}" for number in range(80)]
KINDS = ["bad", "good"] * 40


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def pandas() -> Any:
    return pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def datasets() -> Any:
    return pytest.importorskip("datasets")


def first(source: Any) -> Any:
    return source.splits["train"].read(np.arange(1))[0][0]


@pytest.mark.parametrize("form", ["table", "category", "columns", "string", "arrow", "shuffled", "split"])
def test_texts_in_pandas(pandas: Any, form: str) -> None:
    frame = pandas.DataFrame({"text": TEXTS, "label": KINDS})
    source = {
        "table": lambda: weft.open_source(frame),
        "category": lambda: weft.open_source(frame.astype({"label": "category"})),
        "columns": lambda: weft.open_source(frame["text"], frame["label"]),
        "string": lambda: weft.open_source(frame["text"].astype("string"), frame["label"]),
        "arrow": lambda: weft.open_source(frame.convert_dtypes(dtype_backend="pyarrow")),
        "shuffled": lambda: weft.open_source(frame.sample(frac=1, random_state=0)),
        "split": lambda: weft.open_source(frame[:60], test=frame[60:]),
    }[form]()
    assert (source.modality, source.classes) == ("text", ["bad", "good"])
    assert sum(map(len, source.splits.values())) == 80
    assert form != "split" or len(source.splits["test"]) == 20


@pytest.mark.parametrize("kind", ["float64", "Int64", "int8"])
def test_numbers_in_pandas(pandas: Any, kind: str) -> None:
    frame = pandas.DataFrame(DIGITS.data[:120].astype(int)).astype(kind)  # its columns are called 0, 1, 2, …
    source = weft.open_source(frame, pandas.Series(LABELS, index=range(500, 620)))
    assert (source.modality, source.columns[:2], len(source.classes)) == ("vector", ["0", "1"], 10)
    row = source.splits["train"].rows[0]  # type: ignore[union-attr]
    np.testing.assert_array_equal(first(source), DIGITS.data[row].astype(np.float32))


def test_what_is_missing_in_pandas_is_a_sentence(pandas: Any) -> None:
    labels = pandas.array([None, *LABELS[1:]], dtype="Int64")
    with pytest.raises(WeftError, match="label is missing"):
        weft.open_source(pandas.DataFrame(DIGITS.data[:120]), labels)
    with pytest.raises(WeftError, match="same name"):
        weft.open_source(pandas.DataFrame(DIGITS.data[:120, :2], columns=["a", "a"]), LABELS)


@pytest.mark.parametrize("form", ["arrays", "pillow"])
def test_images_in_a_table_of_pandas(pandas: Any, form: str) -> None:
    images: list[Any] = list(PIXELS) if form == "arrays" else [Image.fromarray(image) for image in PIXELS]
    source = weft.open_source(pandas.DataFrame({"image": images, "label": LABELS}))
    assert (source.modality, len(source.classes)) == ("image", 10)
    row = source.splits["train"].rows[0]  # type: ignore[union-attr]
    np.testing.assert_array_equal(first(source), PIXELS[row][None])


def test_a_run_on_a_table_of_pandas_predicts_one(pandas: Any) -> None:
    frame = pandas.DataFrame(DIGITS.data[:120], columns=[f"p{number}" for number in range(64)])
    run = weft.train(weft.open_source(frame.assign(kind=LABELS), target="kind"), "mlp", steps=3, batch_size=32)
    swapped = frame[frame.columns[::-1]]
    assert run.predict(frame[:4]) == run.predict(swapped[:4]), "columns are found by their names"
    board = Leaderboard({"rows": [{"name": "mlp", "model": "mlp"}], "metric": "accuracy"}).to_pandas()
    assert isinstance(board, pandas.DataFrame) and board["name"].tolist() == ["mlp"]


@pytest.mark.parametrize("form", ["whole", "shuffled", "filtered", "torch", "dictionary", "columns"])
def test_texts_in_datasets(datasets: Any, form: str) -> None:
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["bad", "good"])}
    )
    whole = datasets.Dataset.from_dict({"text": TEXTS, "label": [0, 1] * 40}, features=features)
    source = {
        "whole": lambda: weft.open_source(whole),
        "shuffled": lambda: weft.open_source(whole.shuffle(seed=0)),
        "filtered": lambda: weft.open_source(whole.select(range(60))),
        "torch": lambda: weft.open_source(whole.with_format("torch")),
        "dictionary": lambda: weft.open_source(whole.train_test_split(0.25, seed=0)),
        "columns": lambda: weft.open_source(whole["text"], whole["label"]),
    }[form]()
    assert source.modality == "text"
    assert source.classes == (["0", "1"] if form == "columns" else ["bad", "good"])
    assert form != "dictionary" or len(source.splits["test"]) == 20


@pytest.mark.parametrize("form", ["image", "array"])
def test_images_in_datasets_with_three_splits(datasets: Any, form: str) -> None:
    kind = datasets.Image() if form == "image" else datasets.Array2D((8, 8), "uint8")
    features = datasets.Features({"image": kind, "label": datasets.ClassLabel(names=list("abcdefghij"))})
    images = [Image.fromarray(image) for image in PIXELS] if form == "image" else PIXELS
    whole = datasets.Dataset.from_dict({"image": images, "label": LABELS.tolist()}, features=features)
    parts = {"train": range(60), "validation": range(60, 80), "test": range(80, 120)}
    source = weft.open_source(datasets.DatasetDict({name: whole.select(rows) for name, rows in parts.items()}))
    assert (source.modality, source.classes[0]) == ("image", "a")
    assert {name: len(split) for name, split in source.splits.items()} == {name: len(r) for name, r in parts.items()}
    held = source.splits["test"]
    pixels, target = held.read(np.arange(1))[0][0], held.targets[0]
    if form == "array":
        np.testing.assert_array_equal(pixels, PIXELS[80][None])
    assert target == LABELS[80]


def test_a_stream_of_datasets_has_no_length(datasets: Any) -> None:
    stream = datasets.Dataset.from_dict({"text": TEXTS, "label": [0, 1] * 40}).to_iterable_dataset()
    with pytest.raises(WeftError, match="no length"):
        weft.open_source(stream)


def test_other_holders_are_answered_with_what_to_give() -> None:
    held = torch.utils.data.TensorDataset(torch.zeros(8, 2), torch.zeros(8))
    with pytest.raises(WeftError, match=r"loader\.dataset"):
        weft.open_source(torch.utils.data.DataLoader(held))
    with pytest.raises(WeftError, match="DataFrame"):
        weft.open_source({"text": TEXTS, "label": KINDS})
