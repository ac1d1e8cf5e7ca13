"""Inputs in memory: texts, pairs and images in the containers that people keep them in, or a sentence about the row."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image

import weft
from data.made import encoded, tar_of_images
from training.runs import configure, train
from weft.data.open.splits import StreamSplit
from weft.data.sources.arrays import listed, recognise, stacked
from weft.errors import WeftError
from weft.training.config import ReadingConfig, RunConfig
from weft.training.inference.predictor import Predictor
from weft.training.run.inputs import read_source

TEXTS = ["a red one", "a blue one", "red again", "blue again"]
PAIRS = [(text, text[::-1]) for text in TEXTS]
rng = np.random.default_rng(0)


class Series:
    """As much of a pandas Series as weft asks for; its index does not begin at 0."""

    def __init__(self, values: list[Any]) -> None:
        self.values, self.index, self.ndim = values, range(7, 7 + len(values)), 1

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, label: int) -> Any:
        return self.values[list(self.index).index(label)]

    def to_numpy(self) -> np.ndarray:
        return np.array(self.values, dtype=object)


class Frame:
    """As much of a pandas DataFrame as weft asks for: going through it gives names, not rows."""

    def __init__(self, **columns: list[Any]) -> None:
        self.columns, self.content, self.ndim, self.iloc = list(columns), columns, 2, None

    def __len__(self) -> int:
        return len(self.content[self.columns[0]])

    def __iter__(self) -> Any:
        return iter(self.columns)

    def __getitem__(self, names: list[str]) -> Frame:
        return Frame(**{name: self.content[name] for name in names})

    def to_numpy(self) -> np.ndarray:
        whole = np.empty((len(self), len(self.columns)), dtype=object)
        for number, name in enumerate(self.columns):
            whole[:, number] = self.content[name]
        numbers = all(isinstance(cell, float) for cell in whole.flat)
        return whole.astype(float) if numbers else whole


def containers(kind: str) -> Any:
    """Series and tables of pandas, or of what stands in for it."""
    if kind == "stand-in":
        return Series, Frame
    pandas = pytest.importorskip("pandas")
    return (lambda values: pandas.Series(values, index=range(7, 7 + len(values)))), lambda **c: pandas.DataFrame(c)


@pytest.mark.parametrize("kind", ["stand-in", "pandas"])
def test_a_column_of_texts_is_texts_and_two_are_pairs(kind: str) -> None:
    series, frame = containers(kind)
    first, second = zip(*PAIRS, strict=True)
    assert recognise(series(TEXTS)) == recognise(frame(text=TEXTS)) == recognise(TEXTS)
    assert recognise(TEXTS).modality == "text"
    assert recognise(frame(a=list(first), b=list(second))) == recognise(PAIRS)
    assert recognise(PAIRS).modality == "pair"
    table = frame(a=[1.0, 2.0], b=[3.0, 4.0])
    assert recognise(table).modality == "vector" and recognise(table).rows is table


@pytest.mark.parametrize(
    "inputs",
    [
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        np.array(TEXTS, dtype=np.dtypes.StringDType()),
        np.array(TEXTS)[:, None],
        pa.array(TEXTS),
        pa.chunked_array([TEXTS[:1], TEXTS[1:]]),
        pa.table({"text": TEXTS}),
    ],
    ids=["tuple", "U", "object", "StringDType", "one column", "Array", "ChunkedArray", "Table"],
)
def test_texts_are_texts_in_any_container(inputs: Any) -> None:
    assert recognise(inputs) == recognise(TEXTS)
    assert all(type(text) is str for text in recognise(inputs).rows)


def test_pairs_are_pairs_in_any_container() -> None:
    first, second = (list(texts) for texts in zip(*PAIRS, strict=True))
    for inputs in (np.array(PAIRS), [list(pair) for pair in PAIRS], pa.table({"a": first, "b": second})):
        assert recognise(inputs) == recognise(PAIRS)


@pytest.mark.parametrize("wrap", [list, Series])
@pytest.mark.parametrize(
    ("rows", "bad"),
    [
        (["a", "b", None], 2),
        ([float("nan"), "b"], 0),
        (["a", 3], 1),
        ([("a", "b"), ("c", None)], 1),
        (["a", ("a", "b")], 1),
        ([("a", "b", "c")], 0),
    ],
)
def test_what_is_no_text_is_named_by_its_row(rows: list[Any], bad: int, wrap: Any) -> None:
    with pytest.raises(WeftError, match=rf"row {bad}\b"):
        recognise(wrap(rows) if wrap is list or not isinstance(rows[0], tuple) else Frame(**columns(rows)))


def columns(rows: list[Any]) -> dict[str, list[Any]]:
    return {f"c{number}": list(column) for number, column in enumerate(zip(*rows, strict=True))}


def photographs(count: int = 3, height: int = 6, width: int = 9) -> np.ndarray:
    """RGB, (n, channels, height, width)."""
    return rng.integers(0, 256, (count, 3, height, width), dtype=np.uint8)


def test_channels_are_found_first_or_last_and_brightness_in_either_scale() -> None:
    images = photographs()
    last = images.transpose(0, 2, 3, 1)
    for same in (images, last, images / 255, (last / 255).astype(np.float32), last.astype(int), torch.tensor(last)):
        found = recognise(same)
        assert found.modality == "image" and np.array_equal(found.rows, images)
    grey = images[:, :1]
    for same in (grey, grey[:, 0], grey[:, 0, :, :, None], grey[:, 0] / 255, grey[:, 0].tolist()):
        assert np.array_equal(recognise(same).rows, grey)
    bands = rng.integers(0, 256, (2, 7, 16, 12), dtype=np.uint8)
    assert np.array_equal(stacked(bands), bands) and np.array_equal(stacked(bands.transpose(0, 2, 3, 1)), bands)
    frozen = images.copy()
    frozen.flags.writeable = False
    assert stacked(images) is not None and stacked(frozen).flags.writeable


def test_lists_of_arrays_and_of_pillow_images_of_any_size() -> None:
    images = [photographs(1, *size)[0] for size in ((6, 9), (12, 3), (8, 8))]
    pillow = [Image.fromarray(image.transpose(1, 2, 0)) for image in images]
    for same in (images, [image.transpose(1, 2, 0) for image in images], pillow):
        assert all(np.array_equal(one, other) for one, other in zip(recognise(same).rows, images, strict=True))
    mixed = recognise([pillow[0].convert("L"), pillow[2]]).rows
    assert [image.shape for image in mixed] == [(3, 6, 9), (3, 8, 8)]
    assert np.array_equal(mixed[0][0], np.asarray(pillow[0].convert("L")))


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((5, 3, 3, 3), np.uint8), "first or last"),
        (np.zeros((5, 3, 8, 1), np.uint8), "first or last"),
        (np.zeros((5, 8, 8, 8), np.uint8), "none of"),
        (np.zeros((5, 8, 3), np.uint8), "into a list"),
        ([np.zeros((3, 8, 8)), np.zeros((8, 8, 3))], "image 1"),
        ([np.zeros((8, 8, 3)), np.zeros((8, 8, 4))], "3 and 4 channels"),
        ([np.zeros((8, 8)), np.zeros((2, 8, 8, 3))], "image 1"),
        (np.array([np.zeros((8, 8)), np.full((8, 8), 16.0)]), "image 1 .* 16"),
        (np.full((2, 8, 8), np.nan), "image 0"),
        ([Image.new("I;16", (8, 8), 300)], "image 0 .* 300"),
        (Image.new("L", (8, 8)), "into a list"),
        ("a text", "into a list"),
    ],
)
def test_images_that_are_unclear_are_refused(images: Any, words: str) -> None:
    with pytest.raises(WeftError, match=words):
        recognise(images)


def test_a_known_number_of_channels_settles_what_a_shape_leaves_open() -> None:
    image = photographs(1, 8, 1)
    with pytest.raises(WeftError, match="first or last"):
        stacked(image)
    assert np.array_equal(stacked(image, channels=3), image)
    assert np.array_equal(listed([image[0], photographs(1)[0]])[0], image[0]), "its neighbours settle it too"


@pytest.fixture(scope="module")
def pictures() -> tuple[weft.Classifier, np.ndarray, np.ndarray]:
    """An estimator that knows bright pictures from dark ones."""
    labels = np.arange(40) % 2
    images = (photographs(40, 8, 8) // 3 + labels[:, None, None, None] * 150).astype(np.uint8)
    return bright_or_dark().fit(images, labels), images, labels


def bright_or_dark() -> weft.Classifier:
    return weft.Classifier(epochs=12, batch_size=8, lr=3e-3, network={"hidden": [8]})


def test_every_form_of_an_image_is_predicted_alike(pictures: Any, tmp_path: Path) -> None:
    """By the estimator, and by the network that it saved."""
    classifier, images, labels = pictures
    expected = classifier.predict_proba(images)
    classifier.save_pretrained(str(tmp_path))
    last = images.transpose(0, 2, 3, 1)
    clear = np.concatenate([last, np.full_like(last[..., :1], 255)], axis=3)
    forms = (last, list(images), list(last / 255), last.astype(np.float32), list(last.astype(float)), clear)
    for same in (*forms, [Image.fromarray(image) for image in last]):
        assert np.array_equal(classifier.predict_proba(same), expected)
        found = weft.load(tmp_path).predict_proba(same)
        assert isinstance(found, np.ndarray) and np.array_equal(found, expected)
    assert classifier.score(last, labels) == 1
    grey = last.mean(3).astype(np.uint8)
    assert np.array_equal(classifier.predict(grey), labels) and weft.load(tmp_path).predict([]) == []


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((8, 8, 3), np.uint8), "into a list"),
        (np.zeros((3, 8, 8), np.uint8), "into a list"),
        ([np.zeros((8, 8, 3), np.uint8), np.zeros((8, 8, 5), np.uint8)], "image 1 has 5 channels"),
        ([np.zeros((8, 8, 3), np.uint8), np.full((8, 8, 3), 7.5)], "image 1 .* 7.5"),
        ([np.zeros((3, 5, 3), np.uint8)], "first or last"),
    ],
)
def test_images_that_a_network_cannot_take_are_refused(pictures: Any, images: Any, words: str) -> None:
    with pytest.raises(WeftError, match=words):
        pictures[0].predict(images)


def test_other_images_of_the_same_size_are_other_images(pictures: Any) -> None:
    """The cache must not take them for those of an earlier fit."""
    classifier, images, labels = pictures
    again = bright_or_dark().fit(255 - images, labels)
    assert again.score(255 - images, labels) == 1
    assert classifier.predictor_.transform != again.predictor_.transform


def text_classifier(inputs: Any, labels: Any) -> weft.Classifier:
    preprocessing = {"max_length": 16, "vocab_size": 64}
    return weft.Classifier("conv_text", epochs=2, preprocessing=preprocessing).fit(inputs, labels)


def test_columns_of_texts_and_of_pairs_are_fitted_and_predicted() -> None:
    labels = Series(["r", "b"] * 8)
    texts, pairs = [TEXTS[n % 4] for n in range(16)], [PAIRS[n % 4] for n in range(16)]
    one, other = text_classifier(Series(texts), labels.to_numpy()), text_classifier(texts, labels.to_numpy())
    expected = other.predict_proba(texts)
    for same in (texts, Series(texts), Frame(text=texts), np.array(texts), pa.array(texts)):
        assert np.array_equal(one.predict_proba(same), expected)
    two = text_classifier(Frame(**columns(pairs)), labels.to_numpy())
    assert two.predictor_.card.pairs and np.array_equal(two.predict(pairs), two.predict(Frame(**columns(pairs))))
    with pytest.raises(WeftError, match="row 1"):
        one.predict(["a", None])
    with pytest.raises(ValueError, match="label of row 1"):
        text_classifier(texts[:3], ["r", None, "b"])


def test_a_table_given_to_a_loaded_run_is_read_by_its_columns(tmp_path: Path) -> None:
    rows = [f"{n % 7},{n % 5},{'yes' if n % 7 > 3 else 'no'}" for n in range(100)]
    (tmp_path / "own.csv").write_text("\n".join(["a,b,label", *rows]) + "\n")
    train(configure("mlp", steps=5, source=str(tmp_path / "own.csv")), tmp_path / "run")
    predictor = Predictor.from_pretrained(tmp_path / "run")
    expected = predictor.outputs([[6.0, 1.0], [2.0, 3.0]])
    assert torch.equal(predictor.outputs(Frame(b=[1.0, 3.0], more=[0.0, 0.0], a=[6.0, 2.0])), expected)
    assert torch.equal(predictor.outputs([{"b": 1.0, "a": 6.0}, [2.0, 3.0]]), expected)
    with pytest.raises(WeftError, match="no column b"):
        predictor.outputs(Frame(a=[1.0]))
    with pytest.raises(WeftError, match="row 1"):
        predictor.outputs([[6.0, 1.0], ["six", 1.0]])


def test_a_share_has_a_row_of_every_class_and_is_part_of_a_larger_share(tmp_path: Path):
    rows = [f"{n},{'rare' if n in (70, 400) else 'often'}" for n in range(500)]
    (tmp_path / "own.csv").write_text("\n".join(["number,label", *rows]) + "\n")

    def share(part: float) -> list[float]:
        reading = ReadingConfig(train_fraction=part, val_fraction=0.01, test_fraction=0.01)
        split = read_source(RunConfig(source=str(tmp_path / "own.csv"), reading=reading)).splits["train"]
        inputs, targets = split.read(np.arange(len(split)))
        assert len(set(targets.tolist())) == 2, "both to be told apart"
        return [float(row[0]) for row in inputs]

    shares = [set(share(part)) for part in (0.005, 0.02, 0.1, 0.5, 1.0)]
    assert all(fewer < more for fewer, more in pairwise(shares)) and [len(each) for each in shares[:2]] == [2, 10]


def test_a_share_of_a_streamed_source_is_about_as_many_rows_and_part_of_a_larger_share(tmp_path: Path):
    folder = str(tar_of_images(tmp_path / "shards", 600))

    def rows(share: float) -> set[str]:
        reading = ReadingConfig(stream=True, train_fraction=share)
        split = read_source(RunConfig(source=folder, reading=reading)).splits["train"]
        images = split.read(np.arange(len(split)))[0]
        assert isinstance(split, StreamSplit) and len(images) == len(split)
        found = {bytes(image) for image in images}
        assert len(found) == len(split), "each row once"
        for row in (0, len(split) // 2, len(split) - 1):  # to look for a place is to read a whole file
            sample = int(split.place(row).split()[-1])
            assert images[row] == encoded(sample, (12, 12)), "a place is that of its row"
        return found

    few, some, all_rows = rows(0.2), rows(0.5), rows(1.0)
    assert few < some < all_rows and len(some) == pytest.approx(len(all_rows) / 2, rel=0.2)
